use std::fmt;

use crate::{FencingToken, LockPath};

/// Why a lease ended before its holder released it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// The lock service ended the session that held the lock.
    SessionExpired,
    /// The lock service answered with another session than the one that held the lock.
    SessionReplaced,
    /// Somebody deleted what stood for the lock: the contender's node or row.
    NodeDeleted,
    /// The lock service could not be reached in time to renew the lease.
    DeadlinePassed,
    /// The section held the lock for longer than its `hold`.
    HoldExceeded,
    /// The holder was asked to give the lock back, and did.
    Revoked,
    /// A resource had seen a newer token.
    RefusedBySink,
    /// The lock service was closed by its own process.
    Closed,
}

impl LossReason {
    pub(crate) const ALL: [Self; 8] = [
        Self::SessionExpired,
        Self::SessionReplaced,
        Self::NodeDeleted,
        Self::DeadlinePassed,
        Self::HoldExceeded,
        Self::Revoked,
        Self::RefusedBySink,
        Self::Closed,
    ];
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SessionExpired => "the lock service expired the session",
            Self::SessionReplaced => "the lock service replaced the session",
            Self::NodeDeleted => "somebody deleted the holder's entry in the lock service",
            Self::DeadlinePassed => "the lease could not be renewed before its deadline",
            Self::HoldExceeded => "the section held it for longer than its `hold`",
            Self::Revoked => "it was revoked",
            Self::RefusedBySink => "a resource had already seen a newer token",
            Self::Closed => "the lock service was closed",
        })
    }
}

/// A lease that is over: which, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "lost the lock `{path}` (token {token}): {reason}; what was in flight is judged by the resource, and the work must start over under a new grant"
)]
#[non_exhaustive]
pub struct Loss {
    /// The lock.
    pub path: LockPath,
    /// The token of the grant that is over.
    pub token: FencingToken,
    /// Why it is over.
    pub reason: LossReason,
}
