use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;

/// Keeps a user's SQL from ending the transaction that it runs in.
///
/// SQLite asks it at each commit of the connection, and turns a refused one into a rollback.
#[derive(Clone, Default)]
pub(crate) struct Gate {
    is_open: Arc<AtomicBool>,
    was_rolled_back: Arc<AtomicBool>,
}

impl Gate {
    /// From now on the connection commits through this gate only.
    pub(crate) fn install(database: &Connection) -> rusqlite::Result<Self> {
        let gate = Self::default();
        let (commits, rolls_back) = (gate.clone(), gate.clone());
        database.commit_hook(Some(move || !commits.is_open.load(Ordering::Relaxed)))?;
        database.rollback_hook(Some(move || {
            rolls_back.was_rolled_back.store(true, Ordering::Relaxed);
        }))?;
        Ok(gate)
    }

    pub(crate) fn begin(&self, database: &Connection) -> rusqlite::Result<()> {
        database.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.was_rolled_back.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the transaction that [`begin`](Self::begin) began is still open.
    pub(crate) fn is_whole(&self, database: &Connection) -> bool {
        !database.is_autocommit() && !self.was_rolled_back.load(Ordering::Relaxed)
    }

    pub(crate) fn commit(&self, database: &Connection) -> rusqlite::Result<()> {
        let mut commit = database.prepare_cached("COMMIT")?;
        self.is_open.store(true, Ordering::Relaxed);
        let committed = commit.execute([]);
        self.is_open.store(false, Ordering::Relaxed);
        committed.map(drop)
    }

    /// Ends whatever is open.
    pub(crate) fn roll_back(database: &Connection) {
        if !database.is_autocommit() {
            if let Err(error) = database.execute_batch("ROLLBACK") {
                tracing::warn!(%error, "could not roll back");
            }
        }
    }
}
