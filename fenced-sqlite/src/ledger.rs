//! What a data file remembers: the newest token of each resource, and the requests.

use std::path::Path;
use std::time::Instant;

use fenced_core::{Answer, Fate, Fence, FencingToken, Mode, Request, SinkError};
use rusqlite::{Connection, OptionalExtension as _};

use crate::{Collected, OpenError, database};

const LAYOUT: i64 = 1;

/// Readers and writers of a resource have a token each: readers do not fence one another.
///
/// Rows of tokens below the floor were collected: where a fence is missing, this takes its place.
const CREATE: &str = "
    CREATE TABLE IF NOT EXISTS fenced_layout (
        only INTEGER PRIMARY KEY CHECK (only = 1), version INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS fenced_fence (
        resource TEXT PRIMARY KEY,
        token INTEGER NOT NULL CHECK (token >= 0), shared INTEGER NOT NULL CHECK (shared >= 0)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS fenced_request (
        id TEXT PRIMARY KEY, resource TEXT NOT NULL, token INTEGER NOT NULL CHECK (token > 0),
        digest BLOB NOT NULL CHECK (length(digest) = 32), answer TEXT NOT NULL,
        created_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS fenced_floor (
        only INTEGER PRIMARY KEY CHECK (only = 1), token INTEGER NOT NULL CHECK (token >= 0)
    ) STRICT;
    INSERT OR IGNORE INTO fenced_floor (only, token) VALUES (1, 0);
    INSERT OR IGNORE INTO fenced_layout (only, version) VALUES (1, 1)";

/// Creates the tables if they are missing. Needs no lock on the file if they are there.
pub(crate) fn create(database: &Connection, path: &Path, limit: Instant) -> Result<(), OpenError> {
    let failed = |error| database::failed(path, error);
    let mut found = layout(database).map_err(failed)?;
    if found.is_none() {
        database::create(database, path, limit, CREATE)?;
        found = layout(database).map_err(failed)?;
    }
    match found {
        Some(found) if found > LAYOUT => Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known: LAYOUT,
        }),
        _ => Ok(()),
    }
}

fn layout(database: &Connection) -> rusqlite::Result<Option<i64>> {
    let is_there = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'fenced_layout')";
    if !database.query_row(is_there, [], |row| row.get(0))? {
        return Ok(None);
    }
    database
        .query_row("SELECT version FROM fenced_layout", [], |row| row.get(0))
        .optional()
}

/// The newest tokens that a resource has seen; zero where there was none.
#[derive(Clone, Copy, Default)]
struct Seen {
    exclusive: i64,
    shared: i64,
}

impl Seen {
    /// The newest of those that make a holder of this kind stale.
    fn against(self, mode: Mode) -> i64 {
        match mode {
            Mode::Shared => self.exclusive,
            _ => self.exclusive.max(self.shared),
        }
    }

    fn raised(self, fence: &Fence) -> Self {
        let mine = fence.token.get();
        match fence.mode {
            Mode::Shared => Self {
                shared: mine,
                ..self
            },
            _ => Self {
                exclusive: mine,
                ..self
            },
        }
    }

    fn of(self, mode: Mode) -> i64 {
        match mode {
            Mode::Shared => self.shared,
            _ => self.exclusive,
        }
    }
}

fn seen(database: &Connection, resource: &str) -> rusqlite::Result<Option<Seen>> {
    database
        .prepare_cached("SELECT token, shared FROM fenced_fence WHERE resource = ?1")?
        .query_row([resource], |row| {
            let (exclusive, shared) = (row.get(0)?, row.get(1)?);
            Ok(Seen { exclusive, shared })
        })
        .optional()
}

/// Below it everything that was older may have been collected.
fn floor(database: &Connection) -> rusqlite::Result<i64> {
    database
        .prepare_cached("SELECT token FROM fenced_floor")?
        .query_row([], |row| row.get(0))
}

/// Raises the fence, within a transaction that writes. Says whether it was lower.
pub(crate) fn raise(database: &Connection, fence: &Fence) -> Result<bool, SinkError> {
    let mine = fence.token;
    let row = seen(database, &fence.resource).map_err(SinkError::backend)?;
    let floor = match row {
        Some(_) => 0,
        None => floor(database).map_err(SinkError::backend)?,
    };
    let newest = row.map_or(floor, |seen| seen.against(fence.mode));
    match FencingToken::try_from(newest) {
        Ok(current) if current > mine => return Err(SinkError::Stale { mine, current }),
        _ => {}
    }
    if row.is_some_and(|seen| seen.of(fence.mode) >= mine.get()) {
        return Ok(false);
    }
    if fence.claimed {
        let resource = fence.resource.clone();
        return Err(SinkError::NotClaimed { resource });
    }
    // A new row keeps the floor, so that a reader's does not admit what was collected.
    let seen = row.unwrap_or(Seen {
        exclusive: floor,
        shared: 0,
    });
    keep(database, &fence.resource, seen.raised(fence)).map_err(SinkError::backend)?;
    Ok(true)
}

fn keep(database: &Connection, resource: &str, seen: Seen) -> rusqlite::Result<()> {
    database
        .prepare_cached(
            "INSERT INTO fenced_fence (resource, token, shared) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET token = excluded.token, shared = excluded.shared",
        )?
        .execute((resource, seen.exclusive, seen.shared))
        .map(drop)
}

/// Deletes what is older than `lowest`, and remembers that it did.
pub(crate) fn collect(database: &Connection, lowest: FencingToken) -> rusqlite::Result<Collected> {
    let execute = |sql| -> rusqlite::Result<u64> {
        let changed = database.prepare_cached(sql)?.execute([lowest.get()])?;
        Ok(changed.try_into().unwrap_or(u64::MAX))
    };
    execute("UPDATE fenced_floor SET token = max(token, ?1)")?;
    Ok(Collected {
        fences: execute("DELETE FROM fenced_fence WHERE max(token, shared) < ?1")?,
        requests: execute("DELETE FROM fenced_request WHERE token < ?1")?,
    })
}

/// The answer that `request` got before.
pub(crate) fn find(database: &Connection, request: &Request) -> Result<Option<Answer>, SinkError> {
    let digest = request.digest()?;
    let found: Option<(Vec<u8>, String)> = database
        .prepare_cached("SELECT digest, answer FROM fenced_request WHERE id = ?1")
        .and_then(|mut find| {
            find.query_row([request.id()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .map_err(SinkError::backend)?;
    match found {
        Some((stored, _)) if stored != digest => Err(request.mismatch()),
        found => Ok(found.map(|(_, answer)| Answer::from_json(answer))),
    }
}

/// Keeps the answer to `request`.
pub(crate) fn remember(
    database: &Connection,
    fence: &Fence,
    request: &Request,
    answer: &Answer,
) -> Result<(), SinkError> {
    let digest = request.digest()?;
    let token = fence.token.get();
    database
        .prepare_cached(
            "INSERT INTO fenced_request (id, resource, token, digest, answer, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, CAST(strftime('%s', 'now') AS INTEGER))",
        )
        .and_then(|mut remember| {
            remember.execute((
                request.id(),
                &fence.resource,
                token,
                digest,
                answer.as_json(),
            ))
        })
        .map(drop)
        .map_err(SinkError::backend)
}

/// What became of `request`, as seen in one snapshot. Below the floor it may have been collected.
pub(crate) fn fate(database: &Connection, request: &Request) -> Result<Fate<Answer>, SinkError> {
    if let Some(answer) = find(database, request)? {
        return Ok(Fate::Applied(answer));
    }
    let Some(sent) = request.fence() else {
        return Ok(Fate::Unknown);
    };
    let seen = seen(database, &sent.resource).map_err(SinkError::backend)?;
    let newest = seen.unwrap_or_default().against(sent.mode);
    let floor = floor(database).map_err(SinkError::backend)?;
    let token = sent.token.get();
    Ok(if newest > token && token >= floor {
        Fate::Absent
    } else {
        Fate::Unknown
    })
}
