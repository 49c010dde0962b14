use fenced_core::{BoxError, Fence, FencingToken, SinkError};

use crate::told::{Said, Told};

/// What a transaction did wrong, so that nothing of it was committed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Misuse {
    #[error(
        "the transaction does not hold the fence of `{resource}`, since it wrote before it entered, entered inside a savepoint, or was ended by a statement, after which nothing was fenced and everything stays: enter first, leave COMMIT and ROLLBACK to `fenced`, and guard the tables"
    )]
    Unfenced { resource: String },
    #[error(
        "a statement of the transaction had failed, so that nothing was committed: return its error instead of committing, or run it in a savepoint"
    )]
    Aborted,
    #[error("`{resource}` cannot name a resource: {reason}")]
    Resource {
        resource: String,
        reason: &'static str,
    },
    #[error(
        "the schema `fenced` is missing or old: call `fenced_postgres::migrate` at start, and grant its use to the service's role"
    )]
    Schema(#[source] BoxError),
}

/// Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[error("no connection of the pool was free within {0:?}: enlarge the pool, or wait longer")]
pub(crate) struct NoConnection(pub(crate) std::time::Duration);

impl From<Misuse> for SinkError {
    fn from(misuse: Misuse) -> Self {
        Self::backend(misuse)
    }
}

/// What an error of the server means to a writer under `fence`.
///
/// Only codes and structured fields count; texts may hold what a user typed.
pub(crate) fn refused(error: impl Told, fence: &Fence) -> SinkError {
    let resource = fence.resource.clone();
    let (code, current) = match error.said() {
        Some(said) => (said.code.to_owned(), said.newest()),
        None => return unfenced(error, resource),
    };
    match (code.as_str(), current) {
        ("ZF001", Some(current)) => SinkError::Stale {
            mine: fence.token,
            current,
        },
        ("ZF002", _) => SinkError::NotClaimed { resource },
        ("ZF003", current) => SinkError::Implausible {
            mine: fence.token,
            current,
        },
        ("ZF004", _) => Misuse::Unfenced { resource }.into(),
        _ if is_schema(&error) => Misuse::Schema(error.into_cause()).into(),
        _ => unfenced(error, resource),
    }
}

/// What an error of a statement in a fenced transaction means: [`SinkError::Retry`] and
/// [`SinkError::Busy`] where the whole transaction should be repeated, else
/// [`SinkError::Backend`].
///
/// ```
/// # use fenced_core::SinkError;
/// enum OrderError { Sink(SinkError) }
///
/// impl From<tokio_postgres::Error> for OrderError {
///     fn from(error: tokio_postgres::Error) -> Self {
///         OrderError::Sink(fenced_postgres::sink_error(error))
///     }
/// }
/// ```
#[must_use]
pub fn sink_error(error: tokio_postgres::Error) -> SinkError {
    of_statement(error)
}

pub(crate) fn of_statement(error: impl Told) -> SinkError {
    let table = error.said().and_then(|said| said.table);
    let resource = table.unwrap_or("a row or table").to_owned();
    unfenced(error, resource)
}

fn unfenced(error: impl Told, resource: String) -> SinkError {
    match error.said().map(|said| said.code) {
        Some(SERIALIZATION_FAILURE | DEADLOCK_DETECTED) => SinkError::Retry(error.into_cause()),
        Some(LOCK_NOT_AVAILABLE) => SinkError::Busy {
            resource,
            pids: Vec::new(),
        },
        Some(IN_FAILED_TRANSACTION) => Misuse::Aborted.into(),
        _ if is_lost(&error) => SinkError::Retry(error.into_cause()),
        _ => SinkError::Backend(error.into_cause()),
    }
}

/// A twin of the request was there a moment ago.
pub(crate) fn collected_twin() -> SinkError {
    SinkError::Retry("a twin of the request was committed, and collected since".into())
}

/// What an error of a statement of ours means that compares nothing.
pub(crate) fn failed(error: impl Told) -> SinkError {
    if is_schema(&error) {
        Misuse::Schema(error.into_cause()).into()
    } else {
        of_statement(error)
    }
}

/// Whether the connection ended, so that the server has rolled back.
fn is_lost(error: &impl Told) -> bool {
    error.is_closed() || error.said().is_some_and(|said| said.is_fatal)
}

/// Whether a name of ours is missing.
fn is_schema(error: &impl Told) -> bool {
    let code = error.said().map(|said| said.code);
    matches!(
        code,
        Some(INVALID_SCHEMA_NAME | UNDEFINED_TABLE | UNDEFINED_FUNCTION)
    )
}

pub(crate) fn is_mismatch(error: &impl Told) -> bool {
    error.said().is_some_and(|said| said.code == "ZF005")
}

/// Whether somebody else has committed the same request.
pub(crate) fn is_twin(error: &impl Told) -> bool {
    error.said().is_some_and(|said| {
        said.code == UNIQUE_VIOLATION
            && said.schema == Some("fenced")
            && said.constraint == Some("request_pkey")
    })
}

/// Whether somebody else was faster to write the same key.
pub(crate) fn is_duplicate(error: &impl Told) -> bool {
    let code = error.said().map(|said| said.code);
    code == Some(UNIQUE_VIOLATION)
}

/// Whether a statement was answered, and refused; a connection that ends says nothing.
pub(crate) fn is_definite(error: &impl Told) -> bool {
    error.said().is_some_and(|said| !said.is_fatal)
}

impl Said<'_> {
    /// The newest token, which our functions put into a field of its own.
    fn newest(&self) -> Option<FencingToken> {
        self.detail?.parse().ok()
    }
}

// See the PostgreSQL documentation, appendix A.
const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK_DETECTED: &str = "40P01";
const LOCK_NOT_AVAILABLE: &str = "55P03";
const IN_FAILED_TRANSACTION: &str = "25P02";
const INVALID_SCHEMA_NAME: &str = "3F000";
const UNDEFINED_TABLE: &str = "42P01";
const UNDEFINED_FUNCTION: &str = "42883";
const UNIQUE_VIOLATION: &str = "23505";
