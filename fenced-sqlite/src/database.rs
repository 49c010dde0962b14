use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use crate::OpenError;
use crate::busy::{self, patiently};

/// Checks a file's name, and keeps it from a later change of the working directory.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, OpenError> {
    let refused = || OpenError::Path {
        path: path.to_owned(),
    };
    if path.file_name().is_none() || path == Path::new(":memory:") || path.is_dir() {
        return Err(refused());
    }
    std::path::absolute(path).map_err(|_| refused())
}

/// Opens a file, creates it if missing, and switches it to WAL, waiting at most until `limit`.
pub(crate) fn open(path: &Path, limit: Instant) -> Result<Connection, OpenError> {
    let failed = |error| failed(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags).map_err(failed)?;
    database.busy_timeout(busy::SLICE).map_err(failed)?;
    let mode: String = patiently(
        || Instant::now() < limit,
        || database.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)),
    )
    .map_err(failed)?;
    if mode != "wal" {
        let path = path.to_owned();
        return Err(OpenError::NoWal { path, mode });
    }
    database
        .execute_batch("PRAGMA synchronous = FULL")
        .map_err(failed)?;
    Ok(database)
}

/// Opens a file that exists, to read it only.
pub(crate) fn open_read_only(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    database.busy_timeout(patience)?;
    Ok(database)
}

/// Runs `create` in a transaction of its own.
pub(crate) fn create(
    database: &Connection,
    path: &Path,
    limit: Instant,
    create: &str,
) -> Result<(), OpenError> {
    patiently(
        || Instant::now() < limit,
        || database.execute_batch("BEGIN IMMEDIATE"),
    )
    .and_then(|()| database.execute_batch(create))
    .and_then(|()| database.execute_batch("COMMIT"))
    .map_err(|error| failed(path, error))
}

pub(crate) fn failed(path: &Path, error: rusqlite::Error) -> OpenError {
    if busy::is_busy(&error) {
        OpenError::Busy {
            path: path.to_owned(),
            pids: busy::writers(path),
        }
    } else {
        OpenError::failed(path, error)
    }
}
