use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use fenced_core::{Answer, Fence, Outcome, Request, SinkError};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::busy::{self, is_busy, patiently};
use crate::gate::Gate;
use crate::{OpenError, ledger};

type Job = Box<dyn FnOnce(&Writer) + Send>;

/// The thread that does all writing of one sink; SQLite admits one writer at a time anyway.
pub(crate) struct Writer {
    database: Connection,
    file: PathBuf,
    gate: Gate,
}

/// The way to a [`Writer`].
pub(crate) struct WriterThread {
    jobs: Sender<Job>,
    busy_limit: Duration,
}

/// Somebody who waits for an answer of a [`Writer`].
pub(crate) struct Caller<'a> {
    until: Instant,
    is_gone: &'a dyn Fn() -> bool,
}

/// A request, and how its answer is kept.
pub(crate) struct Recorded<T> {
    pub(crate) request: Request,
    pub(crate) keep: fn(&T) -> Result<Answer, SinkError>,
    pub(crate) recall: fn(Answer) -> Result<T, SinkError>,
}

/// What one transaction came to.
pub(crate) struct Ran<T, E> {
    /// Whether the fence is surely as high as the holder's token now.
    pub(crate) claimed: bool,
    pub(crate) result: Result<Outcome<T>, E>,
}

impl WriterThread {
    pub(crate) async fn start(
        file: PathBuf,
        busy_limit: Duration,
        open: impl FnOnce() -> Result<Connection, OpenError> + Send + 'static,
    ) -> Result<Self, OpenError> {
        let (jobs, queue) = mpsc::channel();
        let (reply, opened) = oneshot::channel();
        let at = file.clone();
        thread::Builder::new()
            .name("fenced-sqlite-writer".to_owned())
            .spawn(
                move || match open().and_then(|database| Writer::new(database, at)) {
                    Ok(writer) => {
                        if reply.send(Ok(())).is_ok() {
                            writer.run(&queue);
                        }
                    }
                    Err(error) => drop(reply.send(Err(error))),
                },
            )
            .map_err(|error| OpenError::failed(&file, error))?;
        opened
            .await
            .unwrap_or_else(|_| Err(OpenError::failed(&file, "its thread has ended")))?;
        Ok(Self { jobs, busy_limit })
    }

    /// Does `work` on the thread, unless the future is dropped before its turn comes.
    pub(crate) async fn submit<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Writer, &Caller<'_>) -> R + Send + 'static,
    ) -> Result<R, SinkError> {
        let until = Instant::now() + self.busy_limit;
        let (reply, answer) = oneshot::channel();
        let job = move |writer: &Writer| {
            let is_gone = || reply.is_closed();
            if is_gone() {
                return;
            }
            let caller = Caller {
                until,
                is_gone: &is_gone,
            };
            let done = catch_unwind(AssertUnwindSafe(|| work(writer, &caller)));
            Gate::roll_back(&writer.database);
            let _ = reply.send(done);
        };
        let ended = || SinkError::backend("the thread that writes the file has ended");
        self.jobs.send(Box::new(job)).map_err(|_| ended())?;
        match answer.await.map_err(|_| ended())? {
            Ok(done) => Ok(done),
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl Writer {
    fn new(database: Connection, file: PathBuf) -> Result<Self, OpenError> {
        let gate = Gate::install(&database).map_err(|error| OpenError::failed(&file, error))?;
        Ok(Self {
            database,
            file,
            gate,
        })
    }

    fn run(self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            job(&self);
        }
    }

    /// Raises the fence.
    pub(crate) fn claim(&self, caller: &Caller<'_>, fence: &Fence) -> Result<(), SinkError> {
        self.begin(caller, fence)?;
        ledger::raise(&self.database, fence)?;
        self.commit(caller, fence, None)
    }

    /// Claims, looks the request up, runs `body`, remembers the request: all or nothing.
    pub(crate) fn transact<T, E>(
        &self,
        caller: &Caller<'_>,
        fence: &Fence,
        recorded: Option<&Recorded<T>>,
        body: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Ran<T, E>
    where
        E: From<SinkError>,
    {
        let raised = match self.enter(caller, fence, recorded) {
            Ok(Entered::Fresh { raised }) => raised,
            Ok(Entered::Replayed(value)) => {
                let result = value.map(Outcome::Replayed).map_err(E::from);
                return Ran::of(true, result);
            }
            Err(error) => return Ran::of(false, Err(error.into())),
        };
        match body(&self.database) {
            Ok(value) => {
                let finished = self.finish(caller, fence, recorded, &value);
                let claimed = finished.is_ok();
                let result = finished.map(|()| Outcome::Applied(value));
                Ran::of(claimed, result.map_err(E::from))
            }
            Err(error) => Ran::of(self.keep_claim(caller, fence, raised), Err(error)),
        }
    }

    fn enter<T>(
        &self,
        caller: &Caller<'_>,
        fence: &Fence,
        recorded: Option<&Recorded<T>>,
    ) -> Result<Entered<T>, SinkError> {
        self.begin(caller, fence)?;
        let raised = ledger::raise(&self.database, fence)?;
        if let Some(recorded) = recorded {
            if let Some(answer) = ledger::find(&self.database, &recorded.request)? {
                self.commit(caller, fence, None)?;
                return Ok(Entered::Replayed((recorded.recall)(answer)));
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
        self.commit(caller, fence, recorded.map(|recorded| &recorded.request))
    }

    /// Undoes what a failed body wrote, but not the claim: the body may have told what it read.
    fn keep_claim(&self, caller: &Caller<'_>, fence: &Fence, raised: bool) -> bool {
        let is_whole = self.gate.is_whole(&self.database);
        !raised
            || (is_whole
                && self.execute("ROLLBACK TO fenced_claimed").is_ok()
                && self.commit(caller, fence, None).is_ok())
    }

    fn begin(&self, caller: &Caller<'_>, fence: &Fence) -> Result<(), SinkError> {
        patiently(|| caller.waits(), || self.gate.begin(&self.database))
            .map_err(|error| self.refused(fence, error))?;
        if (caller.is_gone)() {
            return Err(SinkError::backend("nobody waits for it any more"));
        }
        Ok(())
    }

    fn commit(
        &self,
        caller: &Caller<'_>,
        fence: &Fence,
        request: Option<&Request>,
    ) -> Result<(), SinkError> {
        let committed = patiently(|| caller.waits(), || self.gate.commit(&self.database));
        committed.map_err(|error| match request {
            Some(request) if !is_busy(&error) => {
                tracing::warn!(%error, request = request.id(), "no answer to a commit");
                request.ambiguous()
            }
            _ => self.refused(fence, error),
        })
    }

    fn execute(&self, sql: &str) -> Result<(), SinkError> {
        self.database
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(drop)
            .map_err(SinkError::backend)
    }

    fn refused(&self, fence: &Fence, error: rusqlite::Error) -> SinkError {
        if is_busy(&error) {
            SinkError::Busy {
                resource: fence.resource.clone(),
                pids: busy::writers(&self.file),
            }
        } else {
            SinkError::backend(error)
        }
    }
}

enum Entered<T> {
    Fresh { raised: bool },
    Replayed(Result<T, SinkError>),
}

impl Caller<'_> {
    fn waits(&self) -> bool {
        Instant::now() < self.until && !(self.is_gone)()
    }
}

impl<T, E> Ran<T, E> {
    fn of(claimed: bool, result: Result<Outcome<T>, E>) -> Self {
        Self { claimed, result }
    }
}
