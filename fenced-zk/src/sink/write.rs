use std::fmt;
use std::sync::Arc;

use fenced_core::{LockPath, SinkError};

/// What the nodes of a resource become, all of them or none.
///
/// Paths are absolute, and below the root of the lock service; missing parents are made. In all,
/// the data may have a million bytes, as much as a request of ZooKeeper's.
///
/// ```
/// use fenced_zk::ZkWrite;
///
/// let write = ZkWrite::put("/config/limits", "100")
///     .and(ZkWrite::update("/config/changes", |old| [old.unwrap_or_default(), b"."].concat()))
///     .and(ZkWrite::delete("/config/draft"));
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is written yet"]
pub struct ZkWrite {
    pub(super) changes: Vec<Change>,
}

#[derive(Clone)]
pub(super) struct Change {
    node: String,
    to: To,
}

type Make = dyn Fn(Option<&[u8]>) -> Vec<u8> + Send + Sync;

#[derive(Clone)]
enum To {
    Data(Vec<u8>),
    Made(Arc<Make>),
    Nothing,
}

impl ZkWrite {
    const MAX_BYTES: usize = 1_000_000;

    /// Sets the data of a node, and makes it if it is missing.
    pub fn put(node: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::one(node.into(), To::Data(data.into()))
    }

    /// Sets the data of a node to what is made of its present data. It is made anew when somebody
    /// else has changed the node meanwhile.
    pub fn update(
        node: impl Into<String>,
        make: impl Fn(Option<&[u8]>) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self::one(node.into(), To::Made(Arc::new(make)))
    }

    /// Removes a node, if it is there.
    pub fn delete(node: impl Into<String>) -> Self {
        Self::one(node.into(), To::Nothing)
    }

    /// Both, in one transaction.
    pub fn and(mut self, other: Self) -> Self {
        self.changes.extend(other.changes);
        self
    }

    fn one(node: String, to: To) -> Self {
        let changes = vec![Change { node, to }];
        Self { changes }
    }
}

impl Change {
    pub(super) fn path(&self, root: &str) -> Result<String, SinkError> {
        path(root, &self.node)
    }

    /// The data that the node is to have; none if it is to go.
    pub(super) fn of(&self, present: Option<&[u8]>) -> Option<Vec<u8>> {
        match &self.to {
            To::Data(data) => Some(data.clone()),
            To::Made(make) => Some(make(present)),
            To::Nothing => None,
        }
    }
}

/// The full path, unless it is none that data may be kept at.
pub(super) fn path(root: &str, node: &str) -> Result<String, SinkError> {
    let path = LockPath::new(node).map_err(SinkError::backend)?;
    if path.as_str() == "/fenced" || path.as_str().starts_with("/fenced/") {
        let why = format!("`{path}` is where `fenced` keeps its own: write elsewhere");
        return Err(SinkError::backend(why));
    }
    Ok(format!("{root}{path}"))
}

/// Refuses what the server would answer by closing the connection.
pub(super) fn check_size(data: &[Option<Vec<u8>>]) -> Result<(), SinkError> {
    let bytes: usize = data.iter().flatten().map(Vec::len).sum();
    if bytes <= ZkWrite::MAX_BYTES {
        return Ok(());
    }
    let most = ZkWrite::MAX_BYTES;
    Err(SinkError::backend(format!(
        "the data has {bytes} bytes, more than the {most} that one write may have: split it"
    )))
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The data may be secret.
        f.debug_struct("Change")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}
