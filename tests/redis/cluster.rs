//! A cluster of three masters.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use fenced::MemoryLocks;
use fenced::redis::{CheckError, RedisBatch, RedisFenced, RedisSink, RedisWrite};
use fenced::testing::SinkUnderTest;
use fenced::{Fate, Fence, FencingSink, Request, SinkError, section};
use fenced_tests::RedisCluster;
use fenced_tests::shared::fresh_name;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;

use crate::server::{fence, request, token};

/// One for all tests: it ends with the process.
static CLUSTER: LazyLock<RedisCluster> =
    LazyLock::new(|| RedisCluster::start().expect("a cluster"));

async fn connect() -> ClusterConnection {
    connect_to(&CLUSTER).await
}

async fn connect_to(cluster: &RedisCluster) -> ClusterConnection {
    let patience = Duration::from_secs(30);
    let client = ClusterClient::builder(cluster.urls())
        .connection_timeout(patience)
        .response_timeout(patience);
    let client = client.build().expect("URLs");
    client.get_async_connection().await.expect("a connection")
}

struct Subject {
    connection: ClusterConnection,
    sink: RedisSink<ClusterConnection>,
    tag: String,
}

impl Subject {
    async fn new() -> Self {
        let (connection, tag) = (connect().await, fresh_name("cluster"));
        let sink = RedisSink::new(connection.clone()).tag(&tag);
        Self {
            connection,
            sink,
            tag,
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{{{}}}:{name}", self.tag)
    }
}

#[async_trait]
impl SinkUnderTest for Subject {
    type Sink = RedisSink<ClusterConnection>;

    fn sink(&self) -> &RedisSink<ClusterConnection> {
        &self.sink
    }

    fn add(&self, resource: &str, amount: i64) -> RedisWrite {
        RedisBatch::new().incr(self.key(resource), amount).into()
    }

    fn set(&self, resource: &str, value: i64) -> RedisWrite {
        RedisBatch::new()
            .set(self.key(resource), value.to_string())
            .into()
    }

    async fn value(&self, resource: &str) -> i64 {
        get(&self.connection, &self.key(resource)).await
    }
}

async fn get(connection: &ClusterConnection, key: &str) -> i64 {
    let mut get = redis::cmd("GET");
    let count: Option<i64> = get
        .arg(key)
        .query_async(&mut connection.clone())
        .await
        .expect("a count");
    count.unwrap_or_default()
}

mod conformance {
    fenced_core::sink_conformance!(async { super::Subject::new().await });
}

/// A sink whose resources are spread over the nodes by the last part of their names.
async fn spread() -> RedisSink<ClusterConnection> {
    spread_over(connect().await)
}

fn spread_over(connection: ClusterConnection) -> RedisSink<ClusterConnection> {
    let last = |resource: &str| resource.rsplit('/').next().unwrap_or_default().to_owned();
    RedisSink::new(connection).tag_by(last)
}

#[tokio::test]
async fn resources_are_spread_and_each_is_fenced_on_its_node() {
    let (sink, connection) = (spread().await, connect().await);
    let run = fresh_name("spread");
    let mut nodes = HashSet::new();
    for number in 0..50 {
        let name = format!("{run}-{number}");
        let (fence, newer) = (fence_of(&name, 33), fence_of(&name, 34));
        let key = format!("{{{name}}}:count");
        let sent = request("one id").sent_under(fence.clone());
        let add = || RedisBatch::new().incr(&*key, 1).into();
        for replayed in [false, true] {
            let written = sink.write(&fence, &sent, add()).await.expect("a write");
            assert_eq!(written.is_replayed(), replayed);
        }
        sink.claim(&newer).await.expect("a claim");
        let stale = sink.write(&fence, &request("r2"), add()).await;
        assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
        assert!(matches!(sink.outcome(&sent).await, Ok(Fate::Applied(_))));
        assert_eq!(get(&connection, &key).await, 1);
        nodes.insert(node_of(&key));
    }
    assert_eq!(nodes.len(), 3);
}

fn fence_of(name: &str, number: i64) -> Fence {
    Fence::new(format!("/locks/inventory/{name}"), token(number))
}

/// The server that says it has the key.
fn node_of(key: &str) -> String {
    let has = |server: &&fenced_tests::Redis| {
        let answer = server.ask(&format!("EXISTS {key}")).expect("an answer");
        answer.starts_with(":1")
    };
    CLUSTER
        .servers()
        .iter()
        .find(has)
        .expect("some node has it")
        .address()
}

#[tokio::test]
async fn a_section_uses_a_cluster_as_it_uses_one_server() {
    let (sink, locks) = (spread().await, MemoryLocks::new());
    let name = fresh_name("section");
    let left = section(&locks, format!("/locks/inventory/{name}"))
        .run(async |guard| {
            let stock = guard.fence(&sink);
            let key = format!("{{{name}}}:count");
            assert_eq!(stock.get(&*key).await?, None);
            let sell =
                RedisBatch::new()
                    .incr(&*key, -2)
                    .hset(format!("{{{name}}}:orders"), "17", "2");
            let [left, _] = stock
                .run::<[i64; 2]>(request("order-17"), sell)
                .await?
                .into_answer();
            let untagged = stock
                .apply::<[i64; 1]>(RedisBatch::new().del("count"))
                .await;
            assert!(
                untagged
                    .expect_err("no tag")
                    .to_string()
                    .contains("not tagged")
            );
            Ok::<_, SinkError>(left)
        })
        .await
        .expect("a lock");
    assert_eq!(left.expect("a sale"), -2);
}

#[tokio::test]
async fn a_spread_request_must_say_where_it_was_sent() {
    let sink = spread().await;
    let error = sink
        .outcome(&Request::new("r1", &1))
        .await
        .expect_err("no place");
    assert!(matches!(error, SinkError::InvalidRequest { .. }), "{error}");
    assert!(error.to_string().contains("sent_under"), "{error}");
    let bad = RedisSink::new(connect().await).tag_by(|resource| format!("{{{resource}}}"));
    let error = bad.claim(&fence(33)).await.expect_err("a brace");
    assert!(error.to_string().contains("hash tag"), "{error}");
}

#[tokio::test]
async fn a_cluster_is_checked_and_wants_tags() {
    let subject = Subject::new().await;
    subject.sink.check().await.expect("a good cluster");
    spread().await.check().await.expect("a good cluster");
    let untagged = RedisSink::new(connect().await);
    assert!(matches!(untagged.check().await, Err(CheckError::Cluster)));
    let batch = RedisBatch::new().incr("count", 1);
    let error = untagged
        .write(&fence(33), &request("r1"), batch.into())
        .await
        .expect_err("two slots");
    assert!(error.to_string().contains("several slots"), "{error}");
}

/// On a cluster of its own, since a floor is for all.
#[tokio::test]
async fn fences_are_collected_in_every_slot() {
    let cluster = RedisCluster::start().expect("a cluster");
    let sink = spread_over(connect_to(&cluster).await);
    for number in 1..=40 {
        sink.claim(&fence_of(&number.to_string(), number))
            .await
            .expect("a claim");
    }
    let collected = sink.collect(token(21)).await.expect("a collection");
    assert_eq!(collected.fences, 20);
    for number in 1..=40 {
        let older = sink.claim(&fence_of(&number.to_string(), 20)).await;
        assert!(
            matches!(older, Err(SinkError::Stale { .. })),
            "{number}: {older:?}"
        );
    }
    let (name, resource) = ("1", fence_of("1", 1).resource);
    sink.claim(&fence_of(name, 41))
        .await
        .expect("a newer claim");
    sink.reset(&resource, token(5), "a test")
        .await
        .expect("a reset");
    sink.claim(&fence_of(name, 6)).await.expect("a claim");
}
