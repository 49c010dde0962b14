use std::error::Error as _;

use fenced_core::BoxError;
use tokio_postgres::Error;
use tokio_postgres::error::Severity;

/// An error of a client, and what the server said in it.
pub(crate) trait Told: Sized {
    /// Nothing, if it is not the server's.
    fn said(&self) -> Option<Said<'_>>;
    /// Whether the connection is gone.
    fn is_closed(&self) -> bool;
    /// The error, with a text that says what happened.
    fn into_cause(self) -> BoxError;
}

/// The fields of a server's error that mean something to us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<'e> {
    pub(crate) code: &'e str,
    pub(crate) detail: Option<&'e str>,
    pub(crate) schema: Option<&'e str>,
    pub(crate) table: Option<&'e str>,
    pub(crate) constraint: Option<&'e str>,
    /// Whether the server ended the connection with it.
    pub(crate) is_fatal: bool,
}

impl Told for Error {
    fn said(&self) -> Option<Said<'_>> {
        let said = self.as_db_error()?;
        // A severity that is not known ends the connection, to be safe.
        let is_fatal = said.parsed_severity() != Some(Severity::Error);
        Some(Said {
            code: said.code().code(),
            detail: said.detail(),
            schema: said.schema(),
            table: said.table(),
            constraint: said.constraint(),
            is_fatal,
        })
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }

    fn into_cause(self) -> BoxError {
        Failure(self).into()
    }
}

/// An error of the client, which alone says no more than "db error".
#[derive(Debug, thiserror::Error)]
#[error("{}", text(.0))]
pub(crate) struct Failure(#[source] Error);

fn text(error: &Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
