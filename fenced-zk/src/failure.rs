//! What an error of the client says about the request that failed.

use zookeeper_client::Error;

/// What is known of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It had no effect, and would not have any if it were sent again.
    Refused,
    /// It had no effect, and may have one if it is sent again.
    Postponed,
    /// The session is over.
    Over,
    /// It may have had its effect: the server must be asked.
    Unknown,
}

impl Failure {
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::NoNode
            | Error::NodeExists
            | Error::NoAuth
            | Error::InvalidAcl
            | Error::BadArguments(_)
            | Error::NoChildrenForEphemerals
            | Error::BadVersion
            | Error::NotEmpty
            | Error::QuotaExceeded
            | Error::MarshallingError
            | Error::Unimplemented => Self::Refused,
            Error::Throttled | Error::NotReadOnly => Self::Postponed,
            Error::SessionExpired | Error::ClientClosed | Error::AuthFailed => Self::Over,
            // What the client says once the task that serves it is gone.
            Error::UnexpectedError(text) if text.starts_with("expect error state") => Self::Over,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_ambiguous() {
        for error in [
            Error::ConnectionLoss,
            Error::Timeout,
            Error::UnexpectedError("anything".to_owned()),
            Error::UnexpectedErrorCode(-77),
            Error::SessionMoved,
        ] {
            assert_eq!(Failure::of(&error), Failure::Unknown, "{error}");
        }
        assert_eq!(Failure::of(&Error::NoAuth), Failure::Refused);
        assert_eq!(Failure::of(&Error::Throttled), Failure::Postponed);
        assert_eq!(Failure::of(&Error::SessionExpired), Failure::Over);
    }
}
