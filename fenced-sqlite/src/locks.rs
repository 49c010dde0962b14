use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fenced_core::{Lease, LockError, LockRequest, LockService, ServiceId};
use tokio::sync::oneshot;

use crate::contender::{Contender, Job, limit};
use crate::keeper::Keeper;
use crate::queue::Queue;
use crate::{OpenError, busy, database};

/// Locks for the processes of one machine, kept in a file.
///
/// First come, first served, within a process and between processes. A lease is renewed by a
/// thread of its own; a process that is killed or stopped loses its locks when they expire.
/// While the whole machine sleeps no lease runs on.
/// Clones are handles on the same locks.
///
/// The locks of `shop.db` are in the file `shop.db.locks`, apart from any data, so that a writer
/// of the data holds up no lease. Leave that file to this crate: it must not be deleted while any
/// sink remembers a token, and must not be opened but through SQLite. It has to be on a local disk.
///
/// A process that is stopped in the very moment in which it writes that file holds up all others,
/// until it goes on or is killed: their leases run out, and [`LockError::Unavailable`] names it.
///
/// A [shared](fenced_core::Mode::Shared) lock is granted to one holder at a time, too.
///
/// ```
/// use fenced_core::section;
/// use fenced_sqlite::SqliteLocks;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("shop.db");
/// let locks = SqliteLocks::open(file).await?;
/// let token = section(&locks, "/locks/reports")
///     .run(async |guard| guard.token())
///     .await?;
/// assert_eq!(token.get(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteLocks {
    shared: Arc<Shared>,
}

struct Shared {
    id: ServiceId,
    file: PathBuf,
    lease: Duration,
    label: String,
    jobs: Sender<Job>,
}

/// Options of [`SqliteLocks`].
#[derive(Clone, Debug)]
#[must_use = "nothing is open yet"]
pub struct SqliteLocksBuilder {
    lease: Duration,
    poll: Duration,
    label: String,
    patience: Duration,
}

impl SqliteLocks {
    /// How long a lease lasts without renewal, unless told otherwise.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(10);

    /// The shortest lease.
    pub const SHORTEST_LEASE: Duration = Duration::from_millis(200);

    /// The longest lease.
    pub const LONGEST_LEASE: Duration = Duration::from_secs(3_600);

    /// The longest time between two looks at the queue.
    pub const LONGEST_POLL: Duration = Duration::from_millis(20);

    /// The longest label, in characters; what is longer is cut.
    pub const LONGEST_LABEL: usize = 200;

    /// Opens the locks that belong to the data file `path`, and creates them if missing.
    ///
    /// # Errors
    /// An [`OpenError`], after at most [five seconds](SqliteLocksBuilder::patience).
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::builder().open(path).await
    }

    /// Options, for [`SqliteLocksBuilder::open`].
    pub fn builder() -> SqliteLocksBuilder {
        SqliteLocksBuilder {
            lease: Self::DEFAULT_LEASE,
            poll: Duration::from_millis(5),
            label: format!("process {}", std::process::id()),
            patience: Duration::from_secs(5),
        }
    }

    /// The file of the locks.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.shared.file
    }
}

impl SqliteLocksBuilder {
    /// How long a lease lasts without renewal: how long others wait for a process that died.
    ///
    /// It is renewed after a third, and given up by its holder a tenth before its end. Held
    /// within [`SqliteLocks::SHORTEST_LEASE`] and [`SqliteLocks::LONGEST_LEASE`].
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.clamp(SqliteLocks::SHORTEST_LEASE, SqliteLocks::LONGEST_LEASE);
        self
    }

    /// The longest time between two looks at the queue, while waiting; 5 ms unless told otherwise.
    ///
    /// Held within 1 ms and [`SqliteLocks::LONGEST_POLL`].
    pub fn poll_interval(mut self, longest: Duration) -> Self {
        self.poll = longest.clamp(Duration::from_millis(1), SqliteLocks::LONGEST_POLL);
        self
    }

    /// Who asks, where a request does not say; `process <pid>` unless told otherwise.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// How long opening may wait for others; five seconds unless told otherwise.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Opens the locks that belong to the data file `path`, and creates them if missing.
    ///
    /// # Errors
    /// An [`OpenError`].
    ///
    /// # Cancel safety
    /// Dropping the future closes what was opened.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteLocks, OpenError> {
        let file = busy::beside(&database::resolve(path.as_ref())?, ".locks");
        let (jobs, queue) = mpsc::channel();
        let (reply, opened) = oneshot::channel();
        let (at, limit) = (file.clone(), Instant::now() + self.patience);
        let (lease, poll) = (self.lease, self.poll);
        thread::Builder::new()
            .name("fenced-sqlite-locks".to_owned())
            .spawn(move || match Queue::open(&at, lease, limit) {
                Ok(rows) => {
                    if reply.send(Ok(())).is_ok() {
                        Keeper::new(rows, queue, lease, poll).run();
                    }
                }
                Err(error) => drop(reply.send(Err(error))),
            })
            .map_err(|error| OpenError::failed(&file, error))?;
        opened
            .await
            .unwrap_or_else(|_| Err(OpenError::failed(&file, "its thread has ended")))?;
        let shared = Shared {
            id: id(&file),
            file,
            lease,
            label: self.label,
            jobs,
        };
        Ok(SqliteLocks {
            shared: Arc::new(shared),
        })
    }
}

#[async_trait]
impl LockService for SqliteLocks {
    async fn acquire(&self, request: LockRequest<'_>) -> Result<Lease, LockError> {
        /// The thread tells a timeout itself; only a disk that hangs makes it late.
        const LATE: Duration = Duration::from_millis(50);
        let (reply, answer) = oneshot::channel();
        let label = request.label.unwrap_or(&self.shared.label);
        let contender = Contender {
            path: request.path.clone(),
            label: label.chars().take(SqliteLocks::LONGEST_LABEL).collect(),
            budget: request.budget,
            reply,
            jobs: self.shared.jobs.clone(),
        };
        self.shared
            .jobs
            .send(Job::Enter(contender))
            .map_err(|_| LockError::closed(request.path))?;
        let limit = limit(&request.budget) + LATE;
        let Ok(answer) = tokio::time::timeout_at(limit.into(), answer).await else {
            let waited = request.budget.waited();
            let cause = "its file does not answer";
            return Err(LockError::unavailable(request.path, waited, cause));
        };
        answer.map_err(|_| LockError::closed(request.path))?
    }

    fn id(&self) -> ServiceId {
        self.shared.id
    }
}

/// Escaped, two file names never look the same.
fn id(file: &Path) -> ServiceId {
    let name = file.as_os_str().as_encoded_bytes().escape_ascii();
    ServiceId::named(&format!("sqlite {name}"))
}

impl fmt::Debug for SqliteLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLocks")
            .field("file", &self.shared.file)
            .field("lease", &self.shared.lease)
            .finish_non_exhaustive()
    }
}
