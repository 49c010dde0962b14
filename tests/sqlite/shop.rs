use std::path::PathBuf;
use std::time::{Duration, Instant};

use fenced::sqlite::rusqlite::{Connection, Params};
use tempfile::TempDir;

use crate::process::Process;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) const SKU: &str = "/locks/sku";

/// A folder with a data file that processes share.
pub(crate) struct Shop {
    folder: TempDir,
}

impl Shop {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shop = Self { folder };
        let create = "CREATE TABLE stock (count INTEGER NOT NULL) STRICT;
                      INSERT INTO stock VALUES (0);
                      CREATE TABLE visit (
                          number INTEGER PRIMARY KEY AUTOINCREMENT, token INTEGER NOT NULL, event TEXT NOT NULL
                      ) STRICT";
        let data = shop.data();
        data.pragma_update(None, "journal_mode", "WAL").unwrap();
        data.execute_batch(create).unwrap();
        shop
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("shop.db")
    }

    /// A process that has opened the files.
    pub(crate) fn process(&self, lease: Duration) -> Process {
        let mut process = Process::start();
        process.open(&self.file(), lease);
        process
    }

    pub(crate) fn data(&self) -> Connection {
        open(self.file())
    }

    pub(crate) fn locks(&self) -> Connection {
        open(self.folder.path().join("shop.db.locks"))
    }

    pub(crate) fn count(&self) -> i64 {
        number(&self.data(), "SELECT count FROM stock", [])
    }

    pub(crate) fn contenders(&self) -> i64 {
        number(&self.locks(), "SELECT count(*) FROM contender", [])
    }

    pub(crate) fn wait_for_contenders(&self, expected: i64) {
        let started = Instant::now();
        loop {
            let found = self.contenders();
            if found == expected {
                return;
            }
            let waits = started.elapsed() < PATIENCE;
            assert!(waits, "{found} contenders, not {expected}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

pub(crate) fn number(database: &Connection, sql: &str, parameters: impl Params) -> i64 {
    database
        .query_row(sql, parameters, |row| row.get(0))
        .unwrap()
}

fn open(file: PathBuf) -> Connection {
    let database = Connection::open(file).unwrap();
    database.busy_timeout(PATIENCE).unwrap();
    database
}
