use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fenced_core::{
    Answer, Fate, Fence, FencingSink, Outcome, Request, SinkError, SinkId, Statement,
};
use rusqlite::Connection;

use crate::identity::Identity;
use crate::reader::Readers;
use crate::statement::execute_all;
use crate::thread::{Caller, WriterThread};
use crate::writer::{Ran, Recorded, Writer};
use crate::{OpenError, database, ledger, resource};

/// Data in an SQLite file that refuses stale writes.
///
/// The newest token of each resource is in the table `fenced_fence` of the same file, and the
/// requests with their answers in `fenced_request`: they are committed together with the data.
/// Within a section use [`SqliteFenced::run`](crate::SqliteFenced::run). Clones are handles on the
/// same file.
///
/// A process that is stopped inside a transaction holds up all other writers of the file until it
/// goes on or is killed: they get [`SinkError::Busy`] with its process id. Leases, being in
/// another file, are renewed meanwhile.
#[derive(Clone)]
pub struct SqliteSink {
    shared: Arc<Shared>,
}

struct Shared {
    id: SinkId,
    file: PathBuf,
    writer: WriterThread,
    readers: Arc<Readers>,
}

pub(crate) type OnConnect = Arc<dyn Fn(&Connection) -> rusqlite::Result<()> + Send + Sync>;

/// Options of a [`SqliteSink`].
#[derive(Clone)]
#[must_use = "nothing is open yet"]
pub struct SqliteSinkBuilder {
    busy_limit: Duration,
    on_connect: OnConnect,
}

impl SqliteSink {
    /// How long a transaction waits for others that write, unless told otherwise.
    pub const DEFAULT_BUSY_LIMIT: Duration = Duration::from_secs(5);

    /// Opens the file `path`, creates it and the tables of the fence if missing.
    ///
    /// # Errors
    /// An [`OpenError`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::builder().open(path).await
    }

    /// Options, for [`SqliteSinkBuilder::open`].
    pub fn builder() -> SqliteSinkBuilder {
        SqliteSinkBuilder {
            busy_limit: Self::DEFAULT_BUSY_LIMIT,
            on_connect: Arc::new(|_| Ok(())),
        }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.shared.file
    }

    /// Reads outside of a section, in one snapshot of the file.
    ///
    /// It sees what was committed, by whomever; a section that writes on the ground of what it
    /// reads must read in [`run`](crate::SqliteFenced::run). What `body` writes is refused.
    ///
    /// # Errors
    /// [`SinkError::Busy`] and [`SinkError::Backend`].
    ///
    /// # Panics
    /// If `body` does.
    pub async fn read<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SinkError> {
        self.shared
            .readers
            .read(move |database| body(database).map_err(SinkError::backend))
            .await
    }

    pub(crate) fn writer(&self) -> &WriterThread {
        &self.shared.writer
    }

    /// One fenced transaction.
    pub(crate) async fn transact<T, E>(
        &self,
        fence: Fence,
        recorded: Option<Recorded<T>>,
        body: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<Ran<T, E>, SinkError>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        resource::check(&fence)?;
        if let Some(recorded) = &recorded {
            recorded.request.digest()?;
        }
        let resource = fence.resource.clone();
        let work = move |writer: &Writer, caller: &Caller<'_>| {
            writer.transact(caller, &fence, recorded.as_ref(), body)
        };
        self.writer().submit(resource, work).await?
    }
}

impl SqliteSinkBuilder {
    /// How long a transaction, and opening, waits for others that write.
    pub fn busy_limit(mut self, limit: Duration) -> Self {
        self.busy_limit = limit;
        self
    }

    /// Prepares each connection, as by `PRAGMA foreign_keys = ON`: the one that writes, and those
    /// that only can read.
    ///
    /// `PRAGMA synchronous` is `FULL` unless changed here: what was acknowledged then survives a
    /// loss of power.
    pub fn on_connect(
        mut self,
        prepare: impl Fn(&Connection) -> rusqlite::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.on_connect = Arc::new(prepare);
        self
    }

    /// Opens the file `path`, creates it and the tables of the fence if missing.
    ///
    /// # Errors
    /// An [`OpenError`].
    ///
    /// # Cancel safety
    /// Dropping the future closes what was opened.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteSink, OpenError> {
        let file = database::resolve(path.as_ref())?;
        let limit = Instant::now() + self.busy_limit;
        let (at, prepare) = (file.clone(), Arc::clone(&self.on_connect));
        let open = move || {
            let database = database::open(&at, limit)?;
            prepare(&database).map_err(|error| database::failed(&at, error))?;
            ledger::create(&database, &at, limit)?;
            Ok(database)
        };
        let writer = WriterThread::start(file.clone(), self.busy_limit, open).await?;
        let identity = Identity::of(&file).map_err(|error| OpenError::failed(&file, error))?;
        let readers = Readers::new(file.clone(), identity, self.busy_limit, self.on_connect);
        let shared = Shared {
            id: SinkId::unique(),
            file,
            writer,
            readers: Arc::new(readers),
        };
        Ok(SqliteSink {
            shared: Arc::new(shared),
        })
    }
}

#[async_trait]
impl FencingSink for SqliteSink {
    type Write = Vec<Statement>;
    /// How many rows each statement changed, as a JSON array.
    type Answer = Answer;

    async fn claim(&self, fence: &Fence) -> Result<(), SinkError> {
        resource::check(fence)?;
        let (resource, fence) = (fence.resource.clone(), fence.clone());
        let work = move |writer: &Writer, caller: &Caller<'_>| writer.claim(caller, &fence);
        self.writer().submit(resource, work).await?
    }

    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        write: Vec<Statement>,
    ) -> Result<Outcome<Answer>, SinkError> {
        let recorded = Recorded {
            request: request.clone(),
            keep: |answer: &Answer| Ok(answer.clone()),
            recall: Ok,
        };
        let body = move |database: &Connection| Answer::of(&execute_all(database, &write)?);
        match self.transact(fence.clone(), Some(recorded), body).await? {
            Ran::Done(outcome) => Ok(outcome),
            Ran::Failed { error, .. } => Err(error),
        }
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<Answer>, SinkError> {
        request.digest()?;
        request.fence().map_or(Ok(()), resource::check)?;
        let request = request.clone();
        self.shared
            .readers
            .read(move |database| ledger::fate(database, &request))
            .await
    }

    fn id(&self) -> Option<SinkId> {
        Some(self.shared.id)
    }
}

impl fmt::Debug for SqliteSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteSink")
            .field("file", &self.shared.file)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SqliteSinkBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteSinkBuilder")
            .field("busy_limit", &self.busy_limit)
            .finish_non_exhaustive()
    }
}
