use std::time::Duration;

use fenced_core::{BoxError, LockPath};

/// Why there is no session with the ensemble.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZkError {
    /// An option or the connect string cannot be used.
    #[error("cannot connect to ZooKeeper: {0}")]
    Options(String),
    /// No server of the ensemble gave a session in time.
    #[error(
        "no ZooKeeper session with `{servers}` within {waited:.1?} ({cause}): check that a server runs there, can be reached, and speaks the same protocol"
    )]
    #[non_exhaustive]
    Unreachable {
        /// The servers.
        servers: String,
        /// How long was waited.
        waited: Duration,
        /// What was seen last.
        #[source]
        cause: BoxError,
    },
    /// The ensemble refused the credentials.
    #[error("ZooKeeper at `{servers}` refused the credentials: check the user and the password")]
    #[non_exhaustive]
    Credentials {
        /// The servers.
        servers: String,
    },
    /// The session could not be closed in time; the server ends it after its timeout.
    #[error(
        "the ZooKeeper session with `{servers}` could not be closed within {waited:.1?}: its nodes stay until the server ends it, {timeout:.1?} after it last heard of it"
    )]
    #[non_exhaustive]
    NotClosed {
        /// The servers.
        servers: String,
        /// How long was waited.
        waited: Duration,
        /// The session timeout.
        timeout: Duration,
    },
}

/// Why a lock's queue could not be looked at or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// No contender of this lock was created by that transaction, or it has left.
    #[error(
        "the lock `{path}` has no contender that the transaction {czxid} created: it has left, so look at the queue again"
    )]
    #[non_exhaustive]
    NotThere {
        /// The lock.
        path: LockPath,
        /// The transaction.
        czxid: i64,
    },
    /// The server could not be asked, or refused.
    #[error(
        "ZooKeeper did not do as asked at `{node}` ({cause}): if it was a removal, look whether it is done"
    )]
    #[non_exhaustive]
    Failed {
        /// The node.
        node: String,
        /// What was seen.
        #[source]
        cause: BoxError,
    },
    /// There is no session, or it ended before the answer.
    #[error("there is no session with ZooKeeper at present: try again once it is connected")]
    NoSession,
}

impl InspectError {
    pub(crate) fn failed(node: &str, cause: impl Into<BoxError>) -> Self {
        Self::Failed {
            node: node.to_owned(),
            cause: cause.into(),
        }
    }

    pub(crate) fn too_late(node: &str, limit: Duration) -> Self {
        Self::failed(node, format!("no answer within {limit:.1?}"))
    }
}
