use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fenced_core::SinkError;
use rusqlite::Connection;

use crate::busy::{self, is_busy};
use crate::database;
use crate::identity::Identity;
use crate::sink::OnConnect;

/// How many connections are kept for later reads.
const IDLE: usize = 8;

/// The connections through which one sink is read.
pub(crate) struct Readers {
    file: PathBuf,
    identity: Identity,
    busy_limit: Duration,
    on_connect: OnConnect,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) fn new(
        file: PathBuf,
        identity: Identity,
        busy_limit: Duration,
        on_connect: OnConnect,
    ) -> Self {
        Self {
            file,
            identity,
            busy_limit,
            on_connect,
            idle: Mutex::default(),
        }
    }

    /// Runs `body` on one snapshot of the file, on a blocking thread of the runtime.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        body: impl FnOnce(&Connection) -> Result<T, SinkError> + Send + 'static,
    ) -> Result<T, SinkError> {
        let readers = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || readers.read_now(body));
        match read.await {
            Ok(result) => result,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(ended) => Err(SinkError::backend(ended)),
            },
        }
    }

    fn read_now<T>(
        &self,
        body: impl FnOnce(&Connection) -> Result<T, SinkError>,
    ) -> Result<T, SinkError> {
        self.attempt(body).map_err(|error| self.refused(error))
    }

    fn attempt<T>(
        &self,
        body: impl FnOnce(&Connection) -> Result<T, SinkError>,
    ) -> Result<T, SinkError> {
        let idle = self.idle().pop();
        let database = match idle {
            Some(database) => database,
            None => self.connect().map_err(SinkError::backend)?,
        };
        let snapshot = database
            .unchecked_transaction()
            .map_err(SinkError::backend)?;
        let result = body(&snapshot);
        drop(snapshot);
        // Afterwards, so that it holds for a connection that was only just made.
        self.identity.check().map_err(SinkError::backend)?;
        let mut idle = self.idle();
        if database.is_autocommit() && idle.len() < IDLE {
            idle.push(database);
        }
        result
    }

    fn refused(&self, error: SinkError) -> SinkError {
        match error {
            SinkError::Backend(cause) if cause.downcast_ref().is_some_and(is_busy) => {
                SinkError::Busy {
                    resource: self.file.display().to_string(),
                    pids: busy::writers(&self.file),
                }
            }
            error => error,
        }
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let database = database::open_read_only(&self.file, self.busy_limit)?;
        (self.on_connect)(&database)?;
        Ok(database)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
