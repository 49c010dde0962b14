use fenced::redis::{RedisBatch, RedisSink};
use fenced::{Fence, FencingToken, Request};
use fenced_tests::shared;
use fenced_tests::shared::{fresh_name, redis_url};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};

/// The resource of most tests.
pub(crate) const SKU: &str = "/locks/inventory/4711";

/// Keys of one test on the shared server.
pub(crate) struct Server {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) sink: RedisSink,
    pub(crate) tag: String,
}

impl Server {
    pub(crate) async fn new() -> Self {
        let connection = connect(&redis_url()).await;
        let tag = fresh_name("test");
        let sink = RedisSink::new(connection.clone()).tag(&tag);
        Self {
            connection,
            sink,
            tag,
        }
    }

    /// A key of this test.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{{{}}}:{name}", self.tag)
    }

    /// The key of the fences.
    pub(crate) fn fences(&self) -> String {
        format!("fenced:{{{}}}:fences", self.tag)
    }

    /// All keys of this test.
    pub(crate) async fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.ask(&["KEYS", &format!("*{}*", self.tag)]).await;
        keys.sort_unstable();
        keys
    }

    pub(crate) async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        ask(&self.connection, words).await
    }

    pub(crate) async fn count(&self, name: &str) -> i64 {
        let count: Option<i64> = self.ask(&["GET", &self.key(name)]).await;
        count.unwrap_or_default()
    }

    pub(crate) fn add(&self, name: &str, amount: i64) -> RedisBatch {
        RedisBatch::new().incr(self.key(name), amount)
    }
}

/// A connection that waits as long as the sink does.
pub(crate) async fn connect(url: &str) -> MultiplexedConnection {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None);
    Client::open(url)
        .expect("a URL")
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .expect("a connection")
}

pub(crate) async fn ask<T: redis::FromRedisValue>(
    connection: &MultiplexedConnection,
    words: &[&str],
) -> T {
    let mut command = redis::Cmd::new();
    command.arg(words);
    let answer = command.query_async(&mut connection.clone()).await;
    answer.unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// The shared server's `host:port`.
pub(crate) fn address() -> String {
    shared::address_in(&redis_url()).to_owned()
}

pub(crate) fn fence(number: i64) -> Fence {
    Fence::new(SKU, token(number))
}

pub(crate) fn token(number: i64) -> FencingToken {
    FencingToken::try_from(number).expect("a token")
}

pub(crate) fn request(id: &str) -> Request {
    Request::new(id, &id)
}
