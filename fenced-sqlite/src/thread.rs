use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use fenced_core::SinkError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::OpenError;
use crate::writer::Writer;

/// How many wait for their turn; more than these are refused at once.
const LONGEST_QUEUE: usize = 1_024;

type Job = Box<dyn FnOnce(&Writer) + Send>;

/// The thread of a [`Writer`]: SQLite admits one writer at a time anyway.
pub(crate) struct WriterThread {
    jobs: SyncSender<Job>,
    busy_limit: Duration,
}

/// Somebody who waits for an answer of a [`Writer`].
pub(crate) struct Caller<'a> {
    /// What it waits for.
    pub(crate) resource: &'a str,
    until: Instant,
    is_gone: &'a dyn Fn() -> bool,
}

impl WriterThread {
    pub(crate) async fn start(
        file: PathBuf,
        busy_limit: Duration,
        open: impl FnOnce() -> Result<Connection, OpenError> + Send + 'static,
    ) -> Result<Self, OpenError> {
        let (jobs, queue) = mpsc::sync_channel::<Job>(LONGEST_QUEUE);
        let (reply, opened) = oneshot::channel();
        let at = file.clone();
        thread::Builder::new()
            .name("fenced-sqlite-writer".to_owned())
            .spawn(
                move || match open().and_then(|database| Writer::new(database, at)) {
                    Ok(writer) => {
                        if reply.send(Ok(())).is_ok() {
                            while let Ok(job) = queue.recv() {
                                job(&writer);
                            }
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

    /// Does `work` on the thread, unless it is given up before its turn comes.
    pub(crate) async fn submit<R: Send + 'static>(
        &self,
        resource: String,
        work: impl FnOnce(&Writer, &Caller<'_>) -> R + Send + 'static,
    ) -> Result<R, SinkError> {
        let until = Instant::now() + self.busy_limit;
        let busy = SinkError::Busy {
            resource: resource.clone(),
            pids: vec![std::process::id()],
        };
        let (reply, mut answer) = oneshot::channel();
        let turn = Turn::default();
        let job = job(resource, until, turn.clone(), reply, work);
        let ended = || SinkError::backend("the thread that writes the file has ended");
        match self.jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(busy),
            Err(TrySendError::Disconnected(_)) => return Err(ended()),
        }
        let told = match tokio::time::timeout_at(until.into(), &mut answer).await {
            Ok(told) => told,
            Err(_) if turn.take() => return Err(busy),
            Err(_) => answer.await,
        };
        match told.map_err(|_| ended())? {
            Ok(done) => Ok(done),
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// Does `work`, unless it was given up or nobody waits for it any more.
fn job<R: Send + 'static>(
    resource: String,
    until: Instant,
    turn: Turn,
    reply: oneshot::Sender<thread::Result<R>>,
    work: impl FnOnce(&Writer, &Caller<'_>) -> R + Send + 'static,
) -> Job {
    Box::new(move |writer| {
        let is_gone = || reply.is_closed();
        if is_gone() || !turn.take() {
            return;
        }
        let caller = Caller {
            resource: &resource,
            until,
            is_gone: &is_gone,
        };
        let done = catch_unwind(AssertUnwindSafe(|| work(writer, &caller)));
        writer.roll_back();
        let _ = reply.send(done);
    })
}

/// Taken once: by the thread that begins a piece of work, or by the caller who gives it up.
#[derive(Clone, Default)]
struct Turn(Arc<AtomicBool>);

impl Turn {
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

impl Caller<'_> {
    pub(crate) fn waits(&self) -> bool {
        Instant::now() < self.until && !self.is_gone()
    }

    pub(crate) fn is_gone(&self) -> bool {
        (self.is_gone)()
    }
}
