//! What a request asks of ZooKeeper.

/// The kinds of request, each with all its variants on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Any create: of a plain, sequential, container or TTL node.
    Create,
    /// A delete.
    Delete,
    /// A node's stat.
    Exists,
    /// A node's data.
    GetData,
    /// A write of a node's data.
    SetData,
    /// A node's children, with or without its stat.
    GetChildren,
    /// A wait for the leader's latest state.
    Sync,
    /// A transaction.
    Multi,
    /// The end of a watch.
    RemoveWatches,
    /// The watches of a session that has reconnected.
    SetWatches,
    /// Credentials.
    Auth,
    /// A sign of life.
    Ping,
    /// The end of the session.
    CloseSession,
    /// Any other code.
    Other(i32),
}

impl Operation {
    pub(super) fn from_code(code: i32) -> Self {
        match code {
            1 | 15 | 19 | 21 => Self::Create,
            2 => Self::Delete,
            3 => Self::Exists,
            4 => Self::GetData,
            5 => Self::SetData,
            8 | 12 => Self::GetChildren,
            9 => Self::Sync,
            11 => Self::Ping,
            14 | 22 => Self::Multi,
            18 => Self::RemoveWatches,
            100 | 102 => Self::Auth,
            101 | 105 => Self::SetWatches,
            -11 => Self::CloseSession,
            other => Self::Other(other),
        }
    }

    /// Whether its record begins with the path of a node.
    pub(super) fn names_node(self) -> bool {
        use Operation::{
            Create, Delete, Exists, GetChildren, GetData, RemoveWatches, SetData, Sync,
        };
        matches!(
            self,
            Create | Delete | Exists | GetData | SetData | GetChildren | Sync | RemoveWatches
        )
    }

    /// Whether its record ends with the wish for a watch.
    pub(super) fn may_watch(self) -> bool {
        matches!(self, Self::Exists | Self::GetData | Self::GetChildren)
    }
}
