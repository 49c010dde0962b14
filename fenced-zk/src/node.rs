use std::sync::Arc;

use zookeeper_client::Stat;

use crate::session::Session;

/// A contender's node of this session.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) path: Arc<str>,
    pub(crate) czxid: i64,
    directory: usize,
}

impl Node {
    pub(crate) fn new(path: String, directory: &str, stat: &Stat) -> Self {
        Self {
            path: path.into(),
            czxid: stat.czxid,
            directory: directory.len(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.path[self.directory + 1..]
    }

    pub(crate) fn directory(&self) -> &str {
        &self.path[..self.directory]
    }

    /// Whether a node that was read at this path is this very one.
    pub(crate) fn is(&self, stat: &Stat, session: &Session) -> bool {
        stat.czxid == self.czxid && stat.ephemeral_owner == session.id
    }
}
