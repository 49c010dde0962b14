use async_trait::async_trait;
use fenced::Statement;
use fenced::postgres::PgSink;
use fenced::testing::SinkUnderTest;

use crate::database::{self, Database};

struct Subject(Database);

#[async_trait]
impl SinkUnderTest for Subject {
    type Sink = PgSink;

    fn sink(&self) -> &PgSink {
        &self.0.sink
    }

    fn add(&self, resource: &str, amount: i64) -> Vec<Statement> {
        database::add(resource, amount)
    }

    fn set(&self, resource: &str, value: i64) -> Vec<Statement> {
        database::set(resource, value)
    }

    async fn value(&self, resource: &str) -> i64 {
        self.0.count_of(resource).await
    }
}

fenced_core::sink_conformance!(async { Subject(Database::new().await) });
