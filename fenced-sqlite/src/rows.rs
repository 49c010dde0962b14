use std::path::Path;
use std::time::Instant;

use fenced_core::{LockPath, Queue as Standing};
use rusqlite::{Connection, OptionalExtension as _, Transaction};

use crate::OpenError;
use crate::clock::Machine;
use crate::queue::QueueError;

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

impl Applied {
    pub(crate) fn until(until: Instant) -> Self {
        Self {
            left: Vec::new(),
            renewed: Vec::new(),
            entered: Vec::new(),
            until,
        }
    }
}

/// The rows within one transaction.
pub(crate) struct Rows<'a> {
    pub(crate) rows: Transaction<'a>,
    pub(crate) owner: i64,
}

impl Rows<'_> {
    /// Rows that were written under another clock say nothing about now.
    pub(crate) fn adopt(&self, machine: &Machine, path: &Path) -> Result<(), QueueError> {
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
    pub(crate) fn apply(
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

pub(crate) fn standing(
    database: &Connection,
    path: &LockPath,
    token: i64,
) -> rusqlite::Result<Standing> {
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
