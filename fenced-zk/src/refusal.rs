use std::time::Duration;

use fenced_core::{LockError, LockPath, Queue};

/// Why those who wait for a lock get none.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// It is not free, and they asked once only.
    NotFree(Queue),
    /// The server refused for good.
    Server(zookeeper_client::Error),
    /// The sequence numbers of the directory give no order.
    Exhausted,
    /// What the server said cannot be a grant.
    Token(i64),
    /// The service was closed.
    Closed,
}

impl Refusal {
    pub(crate) fn into_error(self, path: &LockPath, waited: Duration) -> LockError {
        match self {
            Self::NotFree(queue) => LockError::timeout(path, waited, queue),
            Self::Server(error) => LockError::refused(path, error),
            Self::Exhausted => LockError::sequence_exhausted(path),
            Self::Token(czxid) => LockError::refused(
                path,
                format!("the transaction id {czxid} of its node is no fencing token"),
            ),
            Self::Closed => LockError::closed(path),
        }
    }
}
