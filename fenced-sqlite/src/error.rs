use std::path::{Path, PathBuf};

use fenced_core::BoxError;

/// Why a file could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The path names no file.
    #[error("{path:?} names no file: give a path such as `data/shop.db`; SQLite creates the file")]
    #[non_exhaustive]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// Others kept the file locked for as long as was waited.
    #[error(
        "`{path}` stayed locked{}: see whether that process is stopped, and try again",
        holders(pids)
    )]
    #[non_exhaustive]
    Busy {
        /// The file.
        path: PathBuf,
        /// The processes that hold it, where the system tells.
        pids: Vec<u32>,
    },
    /// The file cannot be shared between processes in SQLite's WAL mode.
    #[error(
        "`{path}` stays in the journal mode `{mode}`: use a file on a local disk, which can do WAL"
    )]
    #[non_exhaustive]
    NoWal {
        /// The file.
        path: PathBuf,
        /// The mode it is in.
        mode: String,
    },
    /// The file was written by a newer version of this crate.
    #[error("`{path}` has the layout {found}, newer than this program's {known}: update it")]
    #[non_exhaustive]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its tables.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The locks are in use under another clock.
    #[error(
        "the locks of `{path}` are in use in the time namespace `{theirs}`, whose clock is not ours (`{ours}`): run all programs that share them in one time namespace"
    )]
    #[non_exhaustive]
    TimeNamespace {
        /// The file.
        path: PathBuf,
        /// The time namespace in which it is used.
        theirs: String,
        /// The time namespace of this process.
        ours: String,
    },
    /// The machine does not say when it was started.
    #[error("cannot tell one start of this machine from another ({0}), as leases need")]
    Machine(#[source] BoxError),
    /// Anything else that SQLite or the system says.
    #[error("cannot open `{path}`: {cause}")]
    #[non_exhaustive]
    Failed {
        /// The file.
        path: PathBuf,
        /// What was said.
        #[source]
        cause: BoxError,
    },
}

impl OpenError {
    pub(crate) fn failed(path: &Path, cause: impl Into<BoxError>) -> Self {
        Self::Failed {
            path: path.to_owned(),
            cause: cause.into(),
        }
    }
}

fn holders(pids: &[u32]) -> String {
    match pids {
        [] => String::new(),
        [pid] => format!(" by process {pid}"),
        _ => format!(" by the processes {pids:?}"),
    }
}
