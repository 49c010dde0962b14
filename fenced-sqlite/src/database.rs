use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use crate::OpenError;
use crate::busy::{self, patiently};

/// The one name of a file, whichever of its links and relative paths it is called by.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, OpenError> {
    let name = path.file_name();
    let is_other = path.metadata().is_ok_and(|found| !found.is_file());
    let (Some(name), false, false) = (name, path == Path::new(":memory:"), is_other) else {
        return Err(OpenError::Path {
            path: path.to_owned(),
        });
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    path.canonicalize()
        .or_else(|_| folder.canonicalize().map(|folder| folder.join(name)))
        .map_err(|error| OpenError::failed(path, error))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let real = folder.path().canonicalize().unwrap().join("shop.db");
        assert_eq!(resolve(&at("shop.db")).unwrap(), real);
        open(&real, Instant::now()).unwrap();
        std::os::unix::fs::symlink("shop.db", at("link.db")).unwrap();
        assert_eq!(resolve(&at("link.db")).unwrap(), real);
    }

    #[test]
    fn what_names_no_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for bad in [
            Path::new(""),
            Path::new(":memory:"),
            Path::new(".."),
            Path::new("/dev/null"),
            folder.path(),
        ] {
            let error = resolve(bad).unwrap_err();
            assert!(matches!(error, OpenError::Path { .. }), "{error}");
        }
        let error = resolve(&folder.path().join("no/folder.db")).unwrap_err();
        assert!(matches!(error, OpenError::Failed { .. }), "{error}");
    }

    #[test]
    fn a_file_that_is_no_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "remember the milk".repeat(100)).unwrap();
        let error = open(&path, Instant::now()).unwrap_err();
        assert!(matches!(error, OpenError::Failed { .. }), "{error}");
    }
}
