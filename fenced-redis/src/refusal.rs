use std::time::Duration;

use fenced_core::{Fence, FencingToken, Request, SinkError};
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why a command has no answer, or a bad one.
#[derive(Debug)]
pub(crate) enum Refused {
    Silent(Silent),
    Failed(RedisError),
}

/// A server, or the network before it, that does not answer.
#[derive(Debug, thiserror::Error)]
#[error("the server did not answer within {0:?}: look at the network, or allow more time")]
pub(crate) struct Silent(pub(crate) Duration);

#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error("the key `{key}` of operation {number} {reason}: nothing was written")]
    Operation {
        key: String,
        number: usize,
        reason: &'static str,
    },
    #[error(
        "the keys are in several slots ({0}): give the sink a `tag` or `tag_by`, and every key that tag"
    )]
    Slots(#[source] RedisError),
    #[error("the fence of `{0}` cannot be read: something else wrote the key of the fences")]
    Fence(String),
}

/// How sure it is that the server did nothing.
enum Sureness {
    /// It said so.
    Answered,
    /// The connection was never made, as far as the client says; one to a cluster may have sent
    /// the command over another one before.
    Unsent,
    Unknown,
}

impl Refused {
    fn sureness(&self) -> Sureness {
        let Self::Failed(error) = self else {
            return Sureness::Unknown;
        };
        match error.kind() {
            ErrorKind::Server(_) | ErrorKind::Extension => Sureness::Answered,
            ErrorKind::Io if error.is_connection_refusal() => Sureness::Unsent,
            ErrorKind::Io | ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Sureness::Unknown,
            _ => Sureness::Unsent,
        }
    }

    pub(crate) fn is_unknown_script(&self) -> bool {
        let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
        matches!(self, Self::Failed(error) if error.kind() == unknown)
    }

    /// For what can be repeated whether or not it has happened.
    fn into_retry(self) -> SinkError {
        match self {
            Self::Silent(silent) => SinkError::Retry(silent.into()),
            Self::Failed(error) => match error.kind() {
                ErrorKind::InvalidClientConfig | ErrorKind::AuthenticationFailed => {
                    SinkError::backend(error)
                }
                _ => SinkError::Retry(error.into()),
            },
        }
    }
}

/// What it means to a write, or a call of a script.
pub(crate) fn of_write(
    refused: Refused,
    fence: &Fence,
    request: Option<&Request>,
    key_of: impl Fn(usize) -> String,
    ambiguous: impl Fn() -> SinkError,
) -> SinkError {
    match (refused.sureness(), refused) {
        (Sureness::Answered, Refused::Failed(error)) => answered(error, fence, key_of),
        (Sureness::Unsent, refused) if request.is_some() => refused.into_retry(),
        _ => ambiguous(),
    }
}

/// What it means to what can be repeated whether or not it has happened.
pub(crate) fn of_claim(refused: Refused, fence: &Fence) -> SinkError {
    match refused {
        Refused::Failed(error) if is_answer(&error) => answered(error, fence, |_| String::new()),
        refused => refused.into_retry(),
    }
}

/// What it means to a script that compares nothing.
pub(crate) fn of_other(refused: Refused) -> SinkError {
    match refused {
        Refused::Failed(error) if is_answer(&error) => failed(error),
        refused => refused.into_retry(),
    }
}

fn is_answer(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

/// What our scripts say, in the error's first words.
fn answered(error: RedisError, fence: &Fence, key_of: impl Fn(usize) -> String) -> SinkError {
    let (mine, resource) = (fence.token, &fence.resource);
    let detail = error.detail().unwrap_or_default();
    let token = detail.parse::<FencingToken>().ok();
    match (error.code(), token) {
        (Some("FENCED_STALE"), Some(current)) => SinkError::Stale { mine, current },
        (Some("FENCED_IMPLAUSIBLE"), current) => SinkError::Implausible { mine, current },
        (Some("FENCED_UNCLAIMED"), _) => SinkError::NotClaimed {
            resource: resource.clone(),
        },
        (Some("FENCED_UNREADABLE"), _) => SinkError::backend(Unfit::Fence(resource.clone())),
        (Some("FENCED_UNFIT"), _) => SinkError::backend(unfit(detail, key_of)),
        _ => failed(error),
    }
}

fn unfit(detail: &str, key_of: impl Fn(usize) -> String) -> Unfit {
    let (number, reason) = detail.split_once(' ').unwrap_or((detail, ""));
    let number = number.parse().unwrap_or_default();
    Unfit::Operation {
        key: key_of(number),
        number,
        reason: match reason {
            "type" => "holds another type",
            "number" => "holds no whole number of 64 bits",
            "range" => "would hold a number of more than 64 bits",
            _ => "is not for this version of the script",
        },
    }
}

fn failed(error: RedisError) -> SinkError {
    match error.code() {
        Some(
            "ASK" | "BUSY" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "MOVED" | "NOREPLICAS"
            | "READONLY" | "TRYAGAIN",
        ) => SinkError::Retry(error.into()),
        Some("CROSSSLOT") => SinkError::backend(Unfit::Slots(error)),
        _ => SinkError::backend(error),
    }
}
