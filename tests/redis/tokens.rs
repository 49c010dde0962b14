//! Which token is accepted, and what a fence remembers.

use fenced::redis::{RedisBatch, RedisFenced, RedisSink};
use fenced::{Fence, FencingSink, Mode, SinkError};

use crate::holder::holder;
use crate::server::{SKU, Server, fence, request};

fn reader(token: i64) -> Fence {
    let mut fence = fence(token);
    fence.mode = Mode::Shared;
    fence
}

fn is_stale<T: std::fmt::Debug>(result: Result<T, SinkError>, newest: i64) {
    match result {
        Err(SinkError::Stale { current, .. }) => assert_eq!(current.get(), newest),
        other => panic!("not stale: {other:?}"),
    }
}

#[tokio::test]
async fn readers_do_not_fence_each_other() {
    let server = Server::new().await;
    let sink = &server.sink;
    sink.claim(&fence(30)).await.expect("a writer");
    sink.claim(&reader(34)).await.expect("a reader");
    sink.claim(&reader(32)).await.expect("an older reader");
    is_stale(sink.claim(&fence(33)).await, 34);
    is_stale(sink.claim(&fence(30)).await, 34);
    is_stale(sink.claim(&reader(29)).await, 34);
    let claimed = reader(32).claimed(true);
    sink.write(&claimed, &request("r1"), server.add("count", 1).into())
        .await
        .expect("a write");
    sink.claim(&fence(35)).await.expect("a newer writer");
    is_stale(sink.claim(&reader(34)).await, 35);
    let written = sink
        .write(&claimed, &request("r2"), server.add("count", 1).into())
        .await;
    is_stale(written, 35);
    assert_eq!(server.count("count").await, 1);
}

/// A holder that has claimed finds its fence, or the resource has lost data.
#[tokio::test]
async fn a_lost_fence_is_not_made_anew_by_a_write() {
    let server = Server::new().await;
    let write = || server.add("count", 1);
    holder(34, async |guard| {
        let stock = guard.fence(&server.sink);
        stock.claim().await.expect("a claim");
        server.ask::<()>(&["DEL", &server.fences()]).await;
        let lost = stock.apply::<[i64; 1]>(write()).await;
        assert!(
            matches!(lost, Err(SinkError::NotClaimed { .. })),
            "{lost:?}"
        );
        let lost = stock.run::<[i64; 1]>(request("r1"), write()).await;
        assert!(
            matches!(lost, Err(SinkError::NotClaimed { .. })),
            "{lost:?}"
        );
        let lost = stock.get(server.key("count")).await;
        assert!(
            matches!(lost, Err(SinkError::NotClaimed { .. })),
            "{lost:?}"
        );
        // What a failover may bring back.
        server
            .ask::<()>(&["HSET", &server.fences(), SKU, "33"])
            .await;
        let behind = stock.apply::<[i64; 1]>(write()).await;
        assert!(
            matches!(behind, Err(SinkError::NotClaimed { .. })),
            "{behind:?}"
        );
        assert_eq!(server.count("count").await, 0);
        stock.claim().await.expect("another claim");
        stock.apply::<[i64; 1]>(write()).await.expect("a write");
    })
    .await;
}

#[tokio::test]
async fn a_strict_sink_wants_a_claim_before_a_write() {
    let server = Server::new().await;
    let sink = server.sink.clone().strict();
    let write = || server.add("count", 1);
    holder(33, async |guard| {
        let stock = guard.fence(&sink);
        let early = stock.apply::<[i64; 1]>(write()).await;
        assert!(
            matches!(early, Err(SinkError::NotClaimed { .. })),
            "{early:?}"
        );
        assert!(stock.fence().is_ok(), "the lease goes on");
        stock
            .get(server.key("count"))
            .await
            .expect("a read, which claims");
        stock.apply::<[i64; 1]>(write()).await.expect("a write");
    })
    .await;
    let newer = sink.write(&fence(34), &request("r1"), write().into()).await;
    assert!(
        matches!(newer, Err(SinkError::NotClaimed { .. })),
        "{newer:?}"
    );
    assert_eq!(server.count("count").await, 1);
}

#[tokio::test]
async fn an_implausible_token_is_refused() {
    let server = Server::new().await;
    let sink = server.sink.clone().max_step(100);
    sink.claim(&fence(i64::MAX - 200))
        .await
        .expect("a first claim has no measure");
    let far = sink.claim(&fence(i64::MAX - 99)).await;
    assert!(
        matches!(&far, Err(SinkError::Implausible { current: Some(current), .. }) if current.get() == i64::MAX - 200),
        "{far:?}"
    );
    let far = sink
        .write(&fence(i64::MAX), &request("r1"), RedisBatch::new().into())
        .await;
    assert!(matches!(far, Err(SinkError::Implausible { .. })), "{far:?}");
    sink.claim(&fence(i64::MAX - 100)).await.expect("a claim");
}

#[tokio::test]
async fn a_fence_that_was_overwritten_is_not_read_as_one() {
    let server = Server::new().await;
    for nonsense in ["", "x", "-1", "1e3", "33/x", "3 3"] {
        server
            .ask::<()>(&["HSET", &server.fences(), SKU, nonsense])
            .await;
        let error = server.sink.claim(&fence(34)).await.expect_err("nonsense");
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }
    server.ask::<()>(&["SET", &server.fences(), "x"]).await;
    let error = server
        .sink
        .claim(&fence(34))
        .await
        .expect_err("another type");
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
}

#[tokio::test]
async fn names_of_resources_are_checked_and_can_be_chosen() {
    let server = Server::new().await;
    let long = "x".repeat(2_000);
    for bad in ["", "a\nb", &long] {
        let error = server
            .sink
            .claim(&Fence::new(bad, crate::server::token(1)))
            .await;
        assert!(matches!(error, Err(SinkError::Backend(_))), "{error:?}");
    }
    let named = server
        .sink
        .clone()
        .resource_by(|path| path.as_str().replace("/locks", "/stock"));
    holder(33, async |guard| guard.fence(&named).claim().await)
        .await
        .expect("a claim");
    let newest: String = server
        .ask(&["HGET", &server.fences(), "/stock/inventory/4711"])
        .await;
    assert_eq!(newest, "33");
}

/// One server needs no tags.
#[tokio::test]
async fn without_a_tag_a_key_may_have_any_name() {
    let server = fenced_tests::Redis::start().expect("a server");
    let connection = crate::server::connect(&server.url()).await;
    let sink = RedisSink::connect(connection.clone())
        .await
        .expect("a good server");
    let batch = RedisBatch::new()
        .incr("stock:4711", 5)
        .incr("stock:{12}", 6);
    let outcome = sink
        .write(&fence(33), &request("r1"), batch.into())
        .await
        .expect("a write");
    assert_eq!(outcome.into_answer().as_json(), "[5,6]");
    sink.claim(&fence(34)).await.expect("a claim");
    is_stale(sink.claim(&fence(33)).await, 34);
    let mut keys: Vec<String> = crate::server::ask(&connection, &["KEYS", "fenced:*"]).await;
    keys.sort_unstable();
    assert_eq!(keys, ["fenced:fences", "fenced:request:r1"]);
}
