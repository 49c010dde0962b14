use async_trait::async_trait;
use fenced::Statement;
use fenced::postgres::PgSink;
use fenced::testing::SinkUnderTest;
use sqlx::PgPool;

use crate::database::{self, Database};

struct Subject {
    database: Database,
    sink: PgSink<PgPool>,
}

impl Subject {
    async fn new() -> Self {
        let database = Database::new().await;
        let sink = super::sink(&database).await;
        Self { database, sink }
    }
}

#[async_trait]
impl SinkUnderTest for Subject {
    type Sink = PgSink<PgPool>;

    fn sink(&self) -> &PgSink<PgPool> {
        &self.sink
    }

    fn add(&self, resource: &str, amount: i64) -> Vec<Statement> {
        database::add(resource, amount)
    }

    fn set(&self, resource: &str, value: i64) -> Vec<Statement> {
        database::set(resource, value)
    }

    async fn value(&self, resource: &str) -> i64 {
        self.database.count_of(resource).await
    }
}

fenced_core::sink_conformance!(async { Subject::new().await });
