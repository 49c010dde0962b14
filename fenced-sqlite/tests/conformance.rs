//! The embedded default passes the suites of every lock service and sink.

use async_trait::async_trait;
use fenced_core::testing::{LocksUnderTest, SinkUnderTest};
use fenced_core::{LockPath, LockService, SqlValue, Statement};
use fenced_sqlite::rusqlite::Connection;
use fenced_sqlite::{SqliteLocks, SqliteSink};
use tempfile::TempDir;

mod locks {
    use std::time::Duration;

    use super::*;

    struct File {
        folder: TempDir,
    }

    impl File {
        fn rows(&self) -> Connection {
            Connection::open(self.folder.path().join("shop.db.locks")).unwrap()
        }
    }

    #[async_trait]
    impl LocksUnderTest for File {
        async fn open(&self) -> Box<dyn LockService> {
            let locks = SqliteLocks::builder().lease(Duration::from_secs(3));
            Box::new(
                locks
                    .open(self.folder.path().join("shop.db"))
                    .await
                    .unwrap(),
            )
        }

        async fn contenders(&self, path: &LockPath) -> usize {
            let count = "SELECT count(*) FROM contender WHERE path = ?1";
            let count: i64 = self
                .rows()
                .query_row(count, [path.as_str()], |row| row.get(0))
                .unwrap();
            count.try_into().unwrap()
        }

        async fn take_away(&self, path: &LockPath) {
            let delete = "DELETE FROM contender WHERE path = ?1";
            let rows = self.rows();
            rows.busy_timeout(Duration::from_secs(5)).unwrap();
            assert_eq!(rows.execute(delete, [path.as_str()]), Ok(1));
        }
    }

    fenced_core::lock_conformance!(async {
        let folder = tempfile::tempdir().unwrap();
        File { folder }
    });
}

mod sinks {
    use super::*;

    struct File {
        _folder: TempDir,
        sink: SqliteSink,
    }

    impl File {
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("shop.db");
            let create = "CREATE TABLE counter (resource TEXT PRIMARY KEY, value INTEGER) STRICT";
            Connection::open(&file)
                .unwrap()
                .execute_batch(create)
                .unwrap();
            let sink = SqliteSink::open(&file).await.unwrap();
            Self {
                _folder: folder,
                sink,
            }
        }
    }

    fn upsert(resource: &str, value: i64, then: &'static str) -> Vec<Statement> {
        let insert = "INSERT INTO counter VALUES ($1, $2) ON CONFLICT DO UPDATE SET value = ";
        let statement = Statement::new(format!("{insert}{then}"));
        vec![statement.bind(resource).bind(SqlValue::Integer(value))]
    }

    #[async_trait]
    impl SinkUnderTest for File {
        type Sink = SqliteSink;

        fn sink(&self) -> &SqliteSink {
            &self.sink
        }

        fn add(&self, resource: &str, amount: i64) -> Vec<Statement> {
            upsert(resource, amount, "value + $2")
        }

        fn set(&self, resource: &str, value: i64) -> Vec<Statement> {
            upsert(resource, value, "$2")
        }

        async fn value(&self, resource: &str) -> i64 {
            let resource = resource.to_owned();
            let read = self.sink.read(move |database| {
                let select = "SELECT coalesce(max(value), 0) FROM counter WHERE resource = ?1";
                database.query_row(select, [resource], |row| row.get(0))
            });
            read.await.unwrap()
        }
    }

    fenced_core::sink_conformance!(File::new());
}
