//! The rows of a file of locks.
//!
//! Each contender has one row, whose key is its token. The oldest row of a path is the holder's.
//! A row is removed by its owner, or by anybody in a transaction that begins after the row has
//! expired; so whoever sees its own row to be the oldest holds the lock until that expires.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fenced_core::{LockPath, Queue as Standing};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};

use crate::OpenError;
use crate::busy;
use crate::clock::{self, Machine};
use crate::database;
use crate::jitter::random;

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
    machine: Machine,
    owner: i64,
    lease: Duration,
    is_durable: bool,
}

/// What is to be done in one transaction.
#[derive(Default)]
pub(crate) struct Batch<'a> {
    pub(crate) leave: Vec<i64>,
    pub(crate) renew: Vec<i64>,
    pub(crate) enter: Vec<Entry<'a>>,
}

/// A contender without a row.
pub(crate) struct Entry<'a> {
    pub(crate) path: &'a LockPath,
    pub(crate) label: &'a str,
    pub(crate) only_if_free: bool,
}

/// What was done, in the order of the [`Batch`].
pub(crate) struct Applied {
    pub(crate) left: Vec<bool>,
    pub(crate) renewed: Vec<bool>,
    pub(crate) entered: Vec<Entered>,
    /// Until when the rows that were renewed or entered are surely there.
    pub(crate) until: Instant,
}

pub(crate) enum Entered {
    Queued(i64),
    NotFree(Standing),
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
    Sqlite(#[from] rusqlite::Error),
}

impl Applied {
    fn until(until: Instant) -> Self {
        Self {
            left: Vec::new(),
            renewed: Vec::new(),
            entered: Vec::new(),
            until,
        }
    }
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
        standing(&self.database, path, token)
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

/// The rows within one transaction.
struct Rows<'a> {
    rows: Transaction<'a>,
    owner: i64,
}

impl Rows<'_> {
    /// Rows that were written under another clock say nothing about now.
    fn adopt(&self, machine: &Machine, path: &Path) -> Result<(), QueueError> {
        let written = self
            .rows
            .prepare_cached("SELECT boot, time_namespace FROM machine")?
            .query_row([], |row| {
                let (boot, time_namespace) = (row.get(0)?, row.get(1)?);
                Ok(Machine {
                    boot,
                    time_namespace,
                })
            })
            .optional()?;
        match written {
            Some(written) if written == *machine => return Ok(()),
            Some(written) if written.boot == machine.boot && self.are_any()? => {
                return Err(QueueError::Foreign(OpenError::TimeNamespace {
                    path: path.to_owned(),
                    theirs: written.time_namespace,
                    ours: machine.time_namespace.clone(),
                }));
            }
            _ => {}
        }
        self.rows.execute("DELETE FROM contender", [])?;
        self.rows.execute(
            "REPLACE INTO machine (only, boot, time_namespace) VALUES (1, ?1, ?2)",
            [&machine.boot, &machine.time_namespace],
        )?;
        Ok(())
    }

    fn are_any(&self) -> rusqlite::Result<bool> {
        self.rows
            .query_row("SELECT EXISTS (SELECT 1 FROM contender)", [], |row| {
                row.get(0)
            })
    }

    /// Renews before it removes: a late owner whom nobody has passed keeps its place.
    fn apply(
        &self,
        batch: &Batch<'_>,
        now: i64,
        expires: i64,
        applied: &mut Applied,
    ) -> rusqlite::Result<()> {
        for token in &batch.leave {
            applied.left.push(self.leave(*token)?);
        }
        for token in &batch.renew {
            applied.renewed.push(self.renew(*token, expires)?);
        }
        self.rows
            .prepare_cached("DELETE FROM contender WHERE expires <= ?1")?
            .execute([now])?;
        for entry in &batch.enter {
            applied.entered.push(self.enter(entry, expires)?);
        }
        Ok(())
    }

    fn leave(&self, token: i64) -> rusqlite::Result<bool> {
        let left = self
            .rows
            .prepare_cached("DELETE FROM contender WHERE token = ?1 AND owner = ?2")?
            .execute((token, self.owner))?;
        Ok(left > 0)
    }

    fn renew(&self, token: i64, expires: i64) -> rusqlite::Result<bool> {
        let renewed = self
            .rows
            .prepare_cached("UPDATE contender SET expires = ?3 WHERE token = ?1 AND owner = ?2")?
            .execute((token, self.owner, expires))?;
        Ok(renewed > 0)
    }

    fn enter(&self, entry: &Entry<'_>, expires: i64) -> rusqlite::Result<Entered> {
        if entry.only_if_free {
            let standing = standing(&self.rows, entry.path, i64::MAX)?;
            if standing.ahead != Some(0) {
                return Ok(Entered::NotFree(standing));
            }
        }
        self.rows
            .prepare_cached(
                "INSERT INTO contender (path, owner, label, expires) VALUES (?1, ?2, ?3, ?4)",
            )?
            .insert((entry.path.as_str(), self.owner, entry.label, expires))
            .map(Entered::Queued)
    }
}

fn standing(database: &Connection, path: &LockPath, token: i64) -> rusqlite::Result<Standing> {
    let (ahead, holder): (i64, Option<String>) = database
        .prepare_cached(
            "SELECT count(*), (SELECT label FROM contender WHERE path = ?1 ORDER BY token LIMIT 1)
             FROM contender WHERE path = ?1 AND token < ?2",
        )?
        .query_row((path.as_str(), token), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let standing = Standing::default().ahead(usize::try_from(ahead).unwrap_or_default());
    Ok(match holder {
        Some(label) if ahead > 0 => standing.holder(label),
        _ => standing,
    })
}
