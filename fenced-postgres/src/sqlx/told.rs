use fenced_core::{BoxError, SinkError};
use sqlx::Error;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::refusal::of_statement;
use crate::told::{Said, Told};

impl Told for Error {
    fn said(&self) -> Option<Said<'_>> {
        let said = self.as_database_error()?;
        let said = said.try_downcast_ref::<PgDatabaseError>()?;
        Some(Said {
            code: said.code(),
            detail: said.detail(),
            schema: said.schema(),
            table: said.table(),
            constraint: said.constraint(),
            is_fatal: said.severity() != PgSeverity::Error,
        })
    }

    fn is_closed(&self) -> bool {
        matches!(self, Self::Io(_) | Self::Tls(_) | Self::WorkerCrashed)
    }

    fn into_cause(self) -> BoxError {
        self.into()
    }
}

/// What an error of a statement in a fenced transaction means, as
/// [`sink_error`](crate::sink_error) tells of `tokio-postgres`.
#[must_use]
pub fn sink_error(error: Error) -> SinkError {
    of_statement(error)
}
