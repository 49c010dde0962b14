use std::time::Duration;

use fenced_core::{FencingToken, LockError, LockPath, Queue};
use zookeeper_client::Error;

/// Why those who wait for a lock get none.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// It is not free, and they asked once only.
    NotFree(Queue),
    /// The server refused for good.
    Server(Error),
    /// The sequence numbers of the directory give no order.
    Exhausted,
    /// What the server said cannot be a grant.
    Token(i64),
    /// What tokens are based on cannot be used.
    Base(String),
    /// The ensemble has lost its data.
    Regressed {
        token: FencingToken,
        seen: FencingToken,
    },
    /// The service was closed.
    Closed,
}

impl Refusal {
    pub(crate) fn into_error(self, path: &LockPath, waited: Duration) -> LockError {
        match self {
            Self::NotFree(queue) => LockError::timeout(path, waited, queue),
            Self::Server(Error::NoAuth) => LockError::refused(
                path,
                "not authorized: its nodes belong to other credentials, so check the user and the password",
            ),
            Self::Server(error) => LockError::refused(path, error),
            Self::Exhausted => LockError::sequence_exhausted(path),
            Self::Token(czxid) => LockError::refused(
                path,
                format!("the transaction id {czxid} of its node makes no fencing token"),
            ),
            Self::Base(why) => LockError::refused(path, why),
            Self::Regressed { token, seen } => LockError::token_regressed(path, token, seen),
            Self::Closed => LockError::closed(path),
        }
    }
}
