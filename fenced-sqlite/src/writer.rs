use std::path::PathBuf;

use fenced_core::{Answer, Fence, FencingToken, Outcome, Request, SinkError};
use rusqlite::Connection;

use crate::busy::{self, is_busy, patiently};
use crate::gate::Gate;
use crate::identity::Identity;
use crate::thread::Caller;
use crate::{Collected, OpenError, ledger};

/// The connection through which one sink writes.
pub(crate) struct Writer {
    database: Connection,
    file: PathBuf,
    identity: Identity,
    gate: Gate,
}

/// A request, and how its answer is kept.
pub(crate) struct Recorded<T> {
    pub(crate) request: Request,
    pub(crate) keep: fn(&T) -> Result<Answer, SinkError>,
    pub(crate) recall: fn(Answer) -> Result<T, SinkError>,
}

/// What a transaction came to that the file did not refuse.
pub(crate) enum Ran<T, E> {
    Done(Outcome<T>),
    /// Its body failed, and left nothing but the claim, if that could be kept.
    Failed {
        error: E,
        claimed: bool,
    },
}

impl Writer {
    pub(crate) fn new(database: Connection, file: PathBuf) -> Result<Self, OpenError> {
        let gate = Gate::install(&database).map_err(|error| OpenError::failed(&file, error))?;
        let identity = Identity::of(&file).map_err(|error| OpenError::failed(&file, error))?;
        Ok(Self {
            database,
            file,
            identity,
            gate,
        })
    }

    /// Ends whatever was left open.
    pub(crate) fn roll_back(&self) {
        Gate::roll_back(&self.database);
    }

    /// Raises the fence.
    pub(crate) fn claim(&self, caller: &Caller<'_>, fence: &Fence) -> Result<(), SinkError> {
        self.begin(caller)?;
        ledger::raise(&self.database, fence)?;
        self.commit(caller, None)
    }

    /// Deletes what is older than `floor`.
    pub(crate) fn collect(
        &self,
        caller: &Caller<'_>,
        floor: FencingToken,
    ) -> Result<Collected, SinkError> {
        self.begin(caller)?;
        let collected =
            ledger::collect(&self.database, floor).map_err(|error| self.refused(caller, error))?;
        self.commit(caller, None)?;
        Ok(collected)
    }

    /// Claims, looks the request up, runs `body`, remembers the request: all or nothing.
    pub(crate) fn transact<T, E>(
        &self,
        caller: &Caller<'_>,
        fence: &Fence,
        recorded: Option<&Recorded<T>>,
        body: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<Ran<T, E>, SinkError> {
        let raised = match self.enter(caller, fence, recorded)? {
            Entered::Fresh { raised } => raised,
            Entered::Replayed(value) => return Ok(Ran::Done(Outcome::Replayed(value))),
        };
        match body(&self.database) {
            Ok(value) => {
                self.finish(caller, fence, recorded, &value)?;
                Ok(Ran::Done(Outcome::Applied(value)))
            }
            Err(error) => {
                let claimed = self.keep_claim(caller, raised);
                Ok(Ran::Failed { error, claimed })
            }
        }
    }

    fn enter<T>(
        &self,
        caller: &Caller<'_>,
        fence: &Fence,
        recorded: Option<&Recorded<T>>,
    ) -> Result<Entered<T>, SinkError> {
        self.begin(caller)?;
        let raised = ledger::raise(&self.database, fence)?;
        if let Some(recorded) = recorded {
            if let Some(answer) = ledger::find(&self.database, &recorded.request)? {
                self.commit(caller, None)?;
                return (recorded.recall)(answer).map(Entered::Replayed);
            }
        }
        if raised {
            self.execute("SAVEPOINT fenced_claimed")?;
        }
        Ok(Entered::Fresh { raised })
    }

    fn finish<T>(
        &self,
        caller: &Caller<'_>,
        fence: &Fence,
        recorded: Option<&Recorded<T>>,
        value: &T,
    ) -> Result<(), SinkError> {
        if !self.gate.is_whole(&self.database) {
            return Err(SinkError::backend(
                "the transaction was ended from within, so that nothing of it was kept: leave COMMIT and ROLLBACK to `run`",
            ));
        }
        if let Some(recorded) = recorded {
            let answer = (recorded.keep)(value)?;
            ledger::remember(&self.database, fence, &recorded.request, &answer)?;
        }
        self.commit(caller, recorded.map(|recorded| &recorded.request))
    }

    /// Undoes what a failed body wrote, but not the claim: the body may have told what it read.
    fn keep_claim(&self, caller: &Caller<'_>, raised: bool) -> bool {
        let is_whole = self.gate.is_whole(&self.database);
        !raised
            || (is_whole
                && self.execute("ROLLBACK TO fenced_claimed").is_ok()
                && self.commit(caller, None).is_ok())
    }

    fn begin(&self, caller: &Caller<'_>) -> Result<(), SinkError> {
        patiently(|| caller.waits(), || self.gate.begin(&self.database))
            .map_err(|error| self.refused(caller, error))?;
        self.identity.check().map_err(SinkError::backend)?;
        if caller.is_gone() {
            return Err(SinkError::backend("nobody waits for it any more"));
        }
        Ok(())
    }

    /// A commit that failed inside the transaction is definite: it is rolled back. One that ended
    /// the transaction may have reached the disk.
    fn commit(&self, caller: &Caller<'_>, request: Option<&Request>) -> Result<(), SinkError> {
        let committed = patiently(|| caller.waits(), || self.gate.commit(&self.database));
        let Err(error) = committed else {
            return Ok(());
        };
        if !self.database.is_autocommit() {
            self.roll_back();
            return Err(self.refused(caller, error));
        }
        let request = request.map(|request| request.id().to_owned());
        tracing::warn!(%error, request, "no answer to a commit");
        Err(SinkError::Ambiguous { request })
    }

    fn execute(&self, sql: &str) -> Result<(), SinkError> {
        self.database
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(drop)
            .map_err(SinkError::backend)
    }

    fn refused(&self, caller: &Caller<'_>, error: rusqlite::Error) -> SinkError {
        if is_busy(&error) {
            SinkError::Busy {
                resource: caller.resource.to_owned(),
                pids: busy::writers(&self.file),
            }
        } else {
            SinkError::backend(error)
        }
    }
}

enum Entered<T> {
    Fresh { raised: bool },
    Replayed(T),
}
