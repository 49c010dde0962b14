use std::time::Duration;

use fenced_core::BoxError;

/// Why there is no session with the ensemble.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZkError {
    /// An option or the connect string cannot be used.
    #[error("cannot connect to ZooKeeper: {0}")]
    Options(String),
    /// No server of the ensemble gave a session in time.
    #[error(
        "no ZooKeeper session with `{servers}` within {waited:?} ({cause}): check that a server runs there, can be reached, and speaks the same protocol"
    )]
    #[non_exhaustive]
    Unreachable {
        /// The servers.
        servers: String,
        /// How long was waited.
        waited: Duration,
        /// What was seen last.
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
        "the ZooKeeper session with `{servers}` could not be closed within {waited:?}: its nodes stay until the server ends it, {timeout:?} after it last heard of it"
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
