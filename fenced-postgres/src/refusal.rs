use std::error::Error as _;

use fenced_core::{BoxError, Fence, FencingToken, SinkError};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// What a transaction did wrong, so that nothing of it was committed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Misuse {
    #[error(
        "the transaction does not hold the fence of `{resource}`, since it wrote before it entered, entered inside a savepoint, or was ended by a statement: enter first, and leave COMMIT and ROLLBACK to `fenced`"
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
    Schema(#[source] Error),
}

/// Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[error("no connection of the pool was free within {0:?}: enlarge the pool, or wait longer")]
pub(crate) struct NoConnection(pub(crate) std::time::Duration);

/// An error of the client, which alone says no more than "db error".
#[derive(Debug, thiserror::Error)]
#[error("{}", text(.0))]
pub(crate) struct Failure(#[source] pub(crate) Error);

fn text(error: &Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl From<Misuse> for SinkError {
    fn from(misuse: Misuse) -> Self {
        Self::backend(misuse)
    }
}

/// What an error of the server means to a writer under `fence`.
///
/// Only codes and structured fields count; texts may hold what a user typed.
pub(crate) fn refused(error: Error, fence: &Fence) -> SinkError {
    let resource = fence.resource.clone();
    let Some(db) = error.as_db_error() else {
        return unfenced(error, resource);
    };
    match db.code().code() {
        "ZF001" => match current(db) {
            Some(current) => SinkError::Stale {
                mine: fence.token,
                current,
            },
            None => backend(Failure(error)),
        },
        "ZF002" => SinkError::NotClaimed { resource },
        "ZF003" => SinkError::Implausible {
            mine: fence.token,
            current: current(db),
        },
        "ZF004" => Misuse::Unfenced { resource }.into(),
        _ if is_schema(&error) => Misuse::Schema(error).into(),
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
pub fn sink_error(error: Error) -> SinkError {
    let table = error.as_db_error().and_then(DbError::table);
    let resource = table.unwrap_or("a row or table").to_owned();
    unfenced(error, resource)
}

fn unfenced(error: Error, resource: String) -> SinkError {
    match error.code() {
        Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => {
            SinkError::Retry(Failure(error).into())
        }
        Some(&SqlState::LOCK_NOT_AVAILABLE) => SinkError::Busy {
            resource,
            pids: Vec::new(),
        },
        Some(&SqlState::IN_FAILED_SQL_TRANSACTION) => Misuse::Aborted.into(),
        _ if is_lost(&error) => SinkError::Retry(Failure(error).into()),
        _ => backend(Failure(error)),
    }
}

pub(crate) fn backend(error: impl Into<BoxError>) -> SinkError {
    SinkError::backend(error)
}

/// What an error of a statement of ours means that compares nothing.
pub(crate) fn failed(error: Error) -> SinkError {
    if is_schema(&error) {
        Misuse::Schema(error).into()
    } else {
        sink_error(error)
    }
}

/// Whether the connection ended, so that the server has rolled back.
fn is_lost(error: &Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    error.is_closed() || matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

/// Whether a name of ours is missing.
fn is_schema(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(
            &SqlState::INVALID_SCHEMA_NAME
                | &SqlState::UNDEFINED_TABLE
                | &SqlState::UNDEFINED_FUNCTION
        )
    )
}

/// The newest token, which our functions put into a field of its own.
fn current(db: &DbError) -> Option<FencingToken> {
    db.detail()?.parse().ok()
}

pub(crate) fn is_mismatch(error: &Error) -> bool {
    error.code().is_some_and(|code| code.code() == "ZF005")
}

/// Whether somebody else has committed the same request.
pub(crate) fn is_twin(error: &Error) -> bool {
    error.as_db_error().is_some_and(|db| {
        *db.code() == SqlState::UNIQUE_VIOLATION
            && db.schema() == Some("fenced")
            && db.constraint() == Some("request_pkey")
    })
}

/// Whether a statement was answered, and refused; a connection that ends says nothing.
pub(crate) fn is_definite(error: &Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    severity == Some(Severity::Error)
}
