use std::error::Error;

use crate::{BoxError, FencingToken, LockPath, Loss};

/// Why a sink did not do what was asked.
///
/// Except for [`SinkError::Ambiguous`], nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The resource has seen a newer token. Final: the lease is over.
    #[error(
        "the resource has seen token {current}, newer than our {mine}: this holder is stale, and the work must start over under a new grant"
    )]
    Stale {
        /// The token of this holder.
        mine: FencingToken,
        /// The newest token that the resource has seen.
        current: FencingToken,
    },
    /// The fence of the resource is missing, or older than the token of a holder that claimed it.
    #[error(
        "the fence of `{resource}` is missing or behind: claim the resource before writing; if it was claimed, the resource has lost data"
    )]
    NotClaimed {
        /// The resource.
        resource: String,
    },
    /// An older holder's transaction is still open and blocks the claim.
    #[error(
        "`{resource}` is held up by a transaction that is still open{}: try again, or end it",
        blockers(pids)
    )]
    Busy {
        /// The resource.
        resource: String,
        /// The processes that hold it up, as the resource names them, if it does.
        pids: Vec<u32>,
    },
    /// The resource could not serialise the write with others.
    #[error("the resource asks to repeat the write ({}): repeat all of it, with the same request", with_causes(&**.0))]
    Retry(#[source] BoxError),
    /// The id of the request was used before, for something else.
    #[error(
        "the request `{id}` was made before with another content: use a new id for a new request"
    )]
    RequestMismatch {
        /// The id.
        id: String,
    },
    /// The request cannot be named or compared.
    #[error("the request {id:?} cannot be used: {reason}")]
    InvalidRequest {
        /// The id.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The answer got lost, so that the write may have happened.
    #[error("no answer to {}", unanswered(request.as_deref()))]
    Ambiguous {
        /// The id of the request, if the write had one.
        request: Option<String>,
    },
    /// The token is too far ahead of what the resource has seen to be true.
    #[error(
        "token {mine} is implausibly far ahead of {current:?}, the newest that the resource has seen: check where it comes from, or reset the fence"
    )]
    Implausible {
        /// The token offered.
        mine: FencingToken,
        /// The newest token that the resource has seen.
        current: Option<FencingToken>,
    },
    /// The lease is lost. Nothing was written; at most, the fence was raised.
    #[error(transparent)]
    Lost(#[from] Loss),
    /// The lock service cannot be reached right now, so that nothing was sent.
    #[error(
        "the lock `{path}` is suspect, since its service cannot be reached right now: try again before the lease's deadline"
    )]
    Suspect {
        /// The lock.
        path: LockPath,
    },
    /// Anything else that the resource or its client says.
    #[error("the resource failed: {}", with_causes(&**.0))]
    Backend(#[source] BoxError),
}

impl SinkError {
    /// A [`SinkError::Backend`].
    pub fn backend(cause: impl Into<BoxError>) -> Self {
        Self::Backend(cause.into())
    }

    /// Whether the same write may succeed when it is repeated under the same lease.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Retry(_) | Self::Suspect { .. }
        )
    }
}

/// The error, and what is behind it as far as it does not say so itself: clients of databases
/// tend to keep the sentence that helps for their source.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(cause) = behind {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        behind = cause.source();
    }
    text
}

fn unanswered(request: Option<&str>) -> String {
    match request {
        Some(id) => format!(
            "the request `{id}`, which may have been applied: ask `outcome`, or repeat it with the same id"
        ),
        None => "a write without a request, which may have been applied: look at the data before repeating it".to_owned(),
    }
}

fn blockers(pids: &[u32]) -> String {
    match pids {
        [] => String::new(),
        [pid] => format!(" in process {pid}"),
        _ => format!(" in processes {pids:?}"),
    }
}
