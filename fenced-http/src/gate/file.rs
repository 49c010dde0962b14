mod log;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use async_trait::async_trait;
use fenced_core::BoxError;
use rustix::fs::{FlockOperation, flock};
use tokio::sync::oneshot;

use crate::gate::file::log::Log;
use crate::{GateEntry, GateStore};

/// How many entries are written at once at most.
const BATCH: usize = 256;

/// A [`GateStore`] in a file of this machine.
///
/// Each entry is on the disk before it counts; those that arrive together share one `fsync`. A last
/// line that was cut off by a crash was never acknowledged, and is dropped; any other damage is an
/// error. The file is rewritten from time to time without what is superseded. Beside `NAME` there
/// is `NAME.lock`, so that a second process is refused, and for a moment `NAME.new`.
pub struct FileStore {
    path: PathBuf,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// Why a [`FileStore`] cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileStoreError {
    /// Another process has it.
    #[error(
        "{} is used by another process: run one gate for each file", path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A line in the middle is damaged.
    #[error(
        "line {line} of {} is damaged, and lines after it are not: restore the file, or raise the gate's floor above every token and remove it", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An earlier write failed, so that nobody knows what is in the file.
    #[error("{} failed before: mend the disk, and start the service again", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
    },
}

enum Job {
    Load(oneshot::Sender<Result<Vec<GateEntry>, FileStoreError>>),
    Append(GateEntry, oneshot::Sender<Result<(), FileStoreError>>),
}

impl FileStore {
    /// Opens the file `path`, and creates it if missing.
    ///
    /// # Errors
    /// A [`FileStoreError`].
    ///
    /// # Cancel safety
    /// Dropping the future closes what was opened.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, FileStoreError> {
        let path = path.as_ref().to_owned();
        let (jobs, queue) = channel();
        let (opened, answer) = oneshot::channel();
        let at = path.clone();
        let run = move || {
            let log = lock(&at).and_then(|lock| Ok((Log::open(&at)?, lock)));
            match log {
                Ok((log, _lock)) => {
                    if opened.send(Ok(())).is_ok() {
                        serve(log, &queue);
                    }
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        };
        let thread = thread::Builder::new().name("fenced-gate".to_owned());
        let thread = thread.spawn(run).map_err(|source| FileStoreError::Io {
            path: path.clone(),
            source,
        })?;
        let opened = answer.await;
        opened.unwrap_or_else(|_| Err(FileStoreError::Failed { path: path.clone() }))?;
        Ok(Self {
            path,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    async fn ask<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, FileStoreError>>) -> Job,
    ) -> Result<T, BoxError> {
        let (done, answer) = oneshot::channel();
        // A thread that is gone drops the job, and its sender.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job(done)));
        match answer.await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(FileStoreError::Failed {
                path: self.path.clone(),
            }
            .into()),
        }
    }
}

#[async_trait]
impl GateStore for FileStore {
    async fn load(&self) -> Result<Vec<GateEntry>, BoxError> {
        self.ask(Job::Load).await
    }

    async fn append(&self, entry: GateEntry) -> Result<(), BoxError> {
        self.ask(|done| Job::Append(entry, done)).await
    }
}

/// The thread of a store: it ends with it, or with the first write that fails.
fn serve(mut log: Log, queue: &Receiver<Job>) {
    while let Ok(first) = queue.recv() {
        let mut waiting = Vec::new();
        let mut entries = Vec::new();
        for job in std::iter::once(first).chain(queue.try_iter()).take(BATCH) {
            match job {
                Job::Load(done) => drop(done.send(log.entries())),
                Job::Append(entry, done) => {
                    entries.push(entry);
                    waiting.push(done);
                }
            }
        }
        if entries.is_empty() {
            continue;
        }
        let appended = log.append(&entries);
        let failed = appended.is_err();
        if let Err(error) = appended {
            tracing::error!(%error, "a gate's file failed, and is not used any more");
        }
        for done in waiting {
            let answer = if failed { Err(log.failed()) } else { Ok(()) };
            // Whoever was dropped meanwhile does not hear it.
            let _ = done.send(answer);
        }
        if failed {
            return;
        }
    }
}

/// Held as long as the file is open; the kernel gives it up when the process ends.
fn lock(path: &Path) -> Result<File, FileStoreError> {
    let fail = |source| FileStoreError::Io {
        path: path.to_owned(),
        source,
    };
    let beside = log::beside(path, "lock");
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false);
    let file = options.open(beside).map_err(fail)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(FileStoreError::InUse {
            path: path.to_owned(),
        }),
        Err(error) => Err(fail(error.into())),
    }
}

impl Drop for FileStore {
    /// Waits for what is being written, so that the file is free afterwards.
    fn drop(&mut self) {
        drop(self.jobs.take());
        // Its panic was printed when it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
