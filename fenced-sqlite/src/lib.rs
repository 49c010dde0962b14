//! The embedded default of `fenced`: locks and data in files of one machine, without a server.
//!
//! | type | file | what is in it |
//! |---|---|---|
//! | [`SqliteLocks`] | `NAME.locks` | the queues and leases, and the counter that makes the tokens |
//! | [`SqliteSink`] | `NAME` | your tables, the newest token of each resource, the requests |
//!
//! All processes must be on one machine (under one kernel, in one time namespace), and the files
//! on a local disk. Open neither file but through SQLite, of which a process must hold one copy:
//! to open and close the file itself drops the process's locks on it.
//!
//! Bodies of [`SqliteFenced::run`] use [`rusqlite`], re-exported here in the version they need.

#[cfg(not(unix))]
compile_error!("fenced-sqlite needs the clock and the file locks of a Unix system");

mod busy;
mod clock;
mod collect;
mod contender;
mod database;
mod error;
mod gate;
mod identity;
mod jitter;
mod keeper;
mod lease;
mod ledger;
mod locks;
mod queue;
mod reader;
mod resource;
mod rows;
mod run;
mod sink;
mod statement;
mod thread;
mod writer;

pub use rusqlite;

pub use collect::Collected;
pub use error::OpenError;
pub use locks::{SqliteLocks, SqliteLocksBuilder};
pub use run::SqliteFenced;
pub use sink::{SqliteSink, SqliteSinkBuilder};
