use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::{FencingToken, LockPath, Loss, PathError};

/// An error of another library, kept as the source of ours.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a section did not run, or did not run to its end.
///
/// Only [`LockError::Lost`] is told after the body was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The lock was not free within the time given.
    #[error("waited {waited:.1?} for the lock `{path}`{queue}: try again later, or wait longer")]
    #[non_exhaustive]
    Timeout {
        /// The lock.
        path: LockPath,
        /// How long was waited.
        waited: Duration,
        /// What was known of the queue.
        queue: Queue,
    },
    /// The lease was lost while the body ran.
    #[error(transparent)]
    Lost(#[from] Loss),
    /// The section runs inside another one of the same lock, and would wait for itself.
    #[error(
        "the lock `{path}` is already held by the section around this one, which would wait for itself: pass the outer guard on to a plain function that takes `&FencedGuard<'_>`, or set `reentrant` on the inner section"
    )]
    #[non_exhaustive]
    Reentrant {
        /// The lock.
        path: LockPath,
    },
    /// No lock service was named, and none is installed.
    #[error(
        "no lock service for `{path}`: call `fenced::install` at start, or name one with `service = …`"
    )]
    #[non_exhaustive]
    NoService {
        /// The lock.
        path: LockPath,
    },
    /// The path cannot name a lock.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The lock's directory has used up its sequence numbers, so that its queue has no order.
    #[error(
        "the lock `{path}` has used up its sequence numbers: delete its directory while nobody holds or awaits it, or use another path"
    )]
    #[non_exhaustive]
    SequenceExhausted {
        /// The lock.
        path: LockPath,
    },
    /// The lock service grants tokens that are not newer than those seen before: it has lost its
    /// data, and every resource would refuse the holder.
    #[error(
        "the lock `{path}` would be granted with token {token}, though {seen} was seen before: the lock service has lost its data, so find the newest token that any resource has seen, and let an operator rebase the lock service above it"
    )]
    #[non_exhaustive]
    TokenRegressed {
        /// The lock.
        path: LockPath,
        /// The token that would have been granted.
        token: FencingToken,
        /// The newest token seen before.
        seen: FencingToken,
    },
    /// The lock service could not be reached, or gave no usable answer, in the time given.
    #[error(
        "the lock service did not answer within {waited:.1?} for the lock `{path}` ({cause}): check that it runs and can be reached"
    )]
    #[non_exhaustive]
    Unavailable {
        /// The lock.
        path: LockPath,
        /// How long was waited.
        waited: Duration,
        /// What was seen last.
        #[source]
        cause: BoxError,
    },
    /// The lock service refused for good.
    #[error("the lock service refused the lock `{path}` ({cause}): trying again will not help")]
    #[non_exhaustive]
    Refused {
        /// The lock.
        path: LockPath,
        /// Its answer.
        #[source]
        cause: BoxError,
    },
    /// The lock service was closed by this process.
    #[error("the lock service was closed before the lock `{path}` was granted: open a new one")]
    #[non_exhaustive]
    Closed {
        /// The lock.
        path: LockPath,
    },
}

impl LockError {
    /// A [`LockError::Timeout`].
    #[must_use]
    pub fn timeout(path: &LockPath, waited: Duration, queue: Queue) -> Self {
        let path = path.clone();
        Self::Timeout {
            path,
            waited,
            queue,
        }
    }

    /// A [`LockError::Unavailable`].
    pub fn unavailable(path: &LockPath, waited: Duration, cause: impl Into<BoxError>) -> Self {
        Self::Unavailable {
            path: path.clone(),
            waited,
            cause: cause.into(),
        }
    }

    /// A [`LockError::Refused`].
    pub fn refused(path: &LockPath, cause: impl Into<BoxError>) -> Self {
        Self::Refused {
            path: path.clone(),
            cause: cause.into(),
        }
    }

    /// A [`LockError::Closed`].
    #[must_use]
    pub fn closed(path: &LockPath) -> Self {
        Self::Closed { path: path.clone() }
    }

    /// A [`LockError::SequenceExhausted`].
    #[must_use]
    pub fn sequence_exhausted(path: &LockPath) -> Self {
        Self::SequenceExhausted { path: path.clone() }
    }

    /// A [`LockError::TokenRegressed`].
    #[must_use]
    pub fn token_regressed(path: &LockPath, token: FencingToken, seen: FencingToken) -> Self {
        let path = path.clone();
        Self::TokenRegressed { path, token, seen }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Timeout { .. } | Self::Lost(_) | Self::Unavailable { .. }
        )
    }
}

/// What a contender that gave up knew of the queue in front of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queue {
    /// How many contenders were in front, the holder among them.
    pub ahead: Option<usize>,
    /// The holder's label.
    pub holder: Option<String>,
}

impl Queue {
    /// Says how many contenders were in front.
    #[must_use]
    pub fn ahead(mut self, ahead: usize) -> Self {
        self.ahead = Some(ahead);
        self
    }

    /// Says who held the lock; a label of another process is shown, never obeyed.
    #[must_use]
    pub fn holder(mut self, label: impl Into<String>) -> Self {
        self.holder = Some(label.into());
        self
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(holder) = &self.holder {
            write!(f, ", held by {holder:?}")?;
        }
        match self.ahead {
            Some(ahead) => write!(f, ", {ahead} ahead in the queue"),
            None => Ok(()),
        }
    }
}

/// What a `#[fenced]` function may return.
///
/// Every `Result<T, E>` with `E: From<LockError>` may be, under any name.
#[diagnostic::on_unimplemented(
    message = "a `#[fenced]` function cannot report a lost lock through `{Self}`",
    label = "must be a `Result<T, E>` where `E: From<fenced::LockError>`",
    note = "waiting for the lock can time out and the lease can be lost; both are returned as `E::from(LockError)`"
)]
pub trait FencedOutput {
    /// Turns a failure of the section itself into the function's output.
    fn from_lock_error(error: LockError) -> Self;

    /// What the function returns: what its body did, or why there was none or not all of it.
    fn from_section(outcome: Result<Self, LockError>) -> Self
    where
        Self: Sized,
    {
        outcome.unwrap_or_else(Self::from_lock_error)
    }
}

#[diagnostic::do_not_recommend]
impl<T, E: From<LockError>> FencedOutput for Result<T, E> {
    fn from_lock_error(error: LockError) -> Self {
        Err(E::from(error))
    }
}
