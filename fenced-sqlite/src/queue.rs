//! The rows of a file of locks.
//!
//! Each contender has one row, whose key is its token. The oldest row of a path is the holder's.
//! A row is removed by its owner, or by anybody in a transaction that begins after the row has
//! expired; so whoever sees its own row to be the oldest holds the lock until that expires.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fenced_core::{LockPath, Queue as Standing};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use crate::OpenError;
use crate::busy;
use crate::clock::{self, Machine};
use crate::database;
use crate::identity::{Identity, Replaced};
use crate::jitter::random;
use crate::rows::{self, Applied, Batch, Rows};

const LAYOUT: i64 = 1;

/// `AUTOINCREMENT` never gives out a number twice, also when all rows are gone.
const CREATE: &str = "
    CREATE TABLE IF NOT EXISTS machine (
        only INTEGER PRIMARY KEY CHECK (only = 1), boot TEXT NOT NULL, time_namespace TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS contender (
        token INTEGER PRIMARY KEY AUTOINCREMENT CHECK (token > 0),
        path TEXT NOT NULL, owner INTEGER NOT NULL, label TEXT NOT NULL, expires INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS contender_path ON contender (path, token);
    CREATE INDEX IF NOT EXISTS contender_expires ON contender (expires);
    PRAGMA user_version = 1";

/// One process's view of a file of locks.
pub(crate) struct Queue {
    database: Connection,
    path: PathBuf,
    identity: Identity,
    machine: Machine,
    owner: i64,
    lease: Duration,
    is_durable: bool,
}

/// The oldest contender for a path.
pub(crate) struct Head {
    pub(crate) token: i64,
    pub(crate) expires: i64,
}

/// Why nothing of a [`Batch`] was done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QueueError {
    #[error(transparent)]
    Foreign(OpenError),
    #[error(transparent)]
    Replaced(#[from] Replaced),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl Queue {
    pub(crate) fn open(path: &Path, lease: Duration, limit: Instant) -> Result<Self, OpenError> {
        let database = database::open(path, limit)?;
        let failed = |error| database::failed(path, error);
        let layout = || database.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
        let found = layout().map_err(failed)?;
        if found > LAYOUT {
            return Err(OpenError::Newer {
                path: path.to_owned(),
                found,
                known: LAYOUT,
            });
        }
        if found < LAYOUT {
            database::create(&database, path, limit, CREATE)?;
        }
        let mut queue = Self {
            database,
            path: path.to_owned(),
            identity: Identity::of(path).map_err(|error| OpenError::failed(path, error))?,
            machine: Machine::this().map_err(OpenError::Machine)?,
            owner: i64::from_ne_bytes(random().to_ne_bytes()),
            lease,
            is_durable: true,
        };
        queue.check(limit)?;
        Ok(queue)
    }

    fn check(&mut self, limit: Instant) -> Result<(), OpenError> {
        loop {
            match self.apply(&Batch::default()) {
                Ok(_) => return Ok(()),
                Err(QueueError::Foreign(error)) => return Err(error),
                Err(QueueError::Replaced(error)) => {
                    return Err(OpenError::failed(&self.path, error));
                }
                Err(QueueError::Sqlite(error))
                    if busy::is_busy(&error) && Instant::now() < limit => {}
                Err(QueueError::Sqlite(error)) => return Err(database::failed(&self.path, error)),
            }
        }
    }

    /// Does a batch in one transaction, and removes what has expired.
    ///
    /// New rows are on the disk when it returns, so that no token is given out again after a loss
    /// of power; that renewals and departures are not costs a wait at worst.
    pub(crate) fn apply(&mut self, batch: &Batch<'_>) -> Result<Applied, QueueError> {
        self.set_durable(!batch.enter.is_empty())?;
        let rows = Rows {
            owner: self.owner,
            rows: self
                .database
                .transaction_with_behavior(TransactionBehavior::Immediate)?,
        };
        self.identity.check()?;
        rows.adopt(&self.machine, &self.path)?;
        // In this order: what the deadline counts from must not be later than what others see.
        let started = Instant::now();
        let now = clock::now();
        let expires = now.saturating_add(clock::nanos(self.lease));
        let mut applied = Applied::until(started + held(self.lease));
        rows.apply(batch, now, expires, &mut applied)?;
        rows.rows.commit()?;
        Ok(applied)
    }

    fn set_durable(&mut self, durable: bool) -> rusqlite::Result<()> {
        if self.is_durable != durable {
            let mode = if durable { "FULL" } else { "NORMAL" };
            self.database.pragma_update(None, "synchronous", mode)?;
            self.is_durable = durable;
        }
        Ok(())
    }

    /// What to tell those who wait because of `trouble`.
    pub(crate) fn explain(&self, trouble: &QueueError) -> String {
        match trouble {
            QueueError::Sqlite(error) if busy::is_busy(error) => OpenError::Busy {
                path: self.path.clone(),
                pids: busy::writers(&self.path),
            }
            .to_string(),
            trouble => trouble.to_string(),
        }
    }

    /// The oldest contender for `path`.
    pub(crate) fn head(&self, path: &LockPath) -> rusqlite::Result<Option<Head>> {
        self.database
            .prepare_cached(
                "SELECT token, expires FROM contender WHERE path = ?1 ORDER BY token LIMIT 1",
            )?
            .query_row([path.as_str()], |row| {
                let (token, expires) = (row.get(0)?, row.get(1)?);
                Ok(Head { token, expires })
            })
            .optional()
    }

    /// What is in front of `token`.
    pub(crate) fn standing(&self, path: &LockPath, token: i64) -> rusqlite::Result<Standing> {
        rows::standing(&self.database, path, token)
    }

    /// A number that changes when another connection has changed the file.
    pub(crate) fn version(&self) -> rusqlite::Result<i64> {
        self.database
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))
    }
}

/// How long a holder trusts its row: a tenth less than others have to respect it.
fn held(lease: Duration) -> Duration {
    lease / 10 * 9
}
