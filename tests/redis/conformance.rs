use async_trait::async_trait;
use fenced::redis::{RedisBatch, RedisSink, RedisWrite};
use fenced::testing::SinkUnderTest;

use crate::server::Server;

struct Subject(Server);

#[async_trait]
impl SinkUnderTest for Subject {
    type Sink = RedisSink;

    fn sink(&self) -> &RedisSink {
        &self.0.sink
    }

    fn add(&self, resource: &str, amount: i64) -> RedisWrite {
        self.0.add(resource, amount).into()
    }

    fn set(&self, resource: &str, value: i64) -> RedisWrite {
        let key = self.0.key(resource);
        RedisBatch::new().set(key, value.to_string()).into()
    }

    async fn value(&self, resource: &str) -> i64 {
        self.0.count(resource).await
    }
}

fenced_core::sink_conformance!(async { Subject(Server::new().await) });
