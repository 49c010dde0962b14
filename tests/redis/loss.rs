//! Connections and servers that go away.

use std::time::Duration;

use fenced::redis::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use fenced::redis::{RedisBatch, RedisFenced, RedisSink};
use fenced::testing::cancel_after;
use fenced::{Fate, FencingSink, SinkError};
use fenced_tests::{Proxy, Redis, Way};
use redis::Client;

use crate::holder::holder;
use crate::server::{Server, connect, fence, request};

/// A connection that is made anew when it breaks, and tries that only for a moment.
async fn manager(url: &str) -> ConnectionManager {
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(1)
        .set_min_delay(Duration::from_millis(10))
        .set_response_timeout(None);
    let client = Client::open(url).expect("a URL");
    ConnectionManager::new_with_config(client, config)
        .await
        .expect("a connection")
}

#[tokio::test]
async fn a_connection_that_is_cut_leaves_the_outcome_open() {
    let server = Redis::start().expect("a server");
    let proxy = Proxy::start(server.address()).expect("a proxy");
    let url = server.url().replace(&server.address(), &proxy.address());
    let sink = RedisSink::new(manager(&url).await);
    let direct = RedisSink::new(connect(&server.url()).await);
    // So that the server knows the scripts.
    sink.write(
        &fence(1),
        &request("r1"),
        RedisBatch::new().incr("count", 1).into(),
    )
    .await
    .expect("a write");
    for (token, way, arrives) in [(2, Way::ToServer, false), (20, Way::ToClient, true)] {
        sink.claim(&fence(token)).await.expect("a claim");
        proxy.silence(way);
        let id = format!("r{token}");
        let sent = request(&id).sent_under(fence(token));
        let batch = RedisBatch::new().incr("count", 1);
        let older = fence(token);
        let writing = sink.write(&older, &sent, batch.into());
        let cutting = async {
            if arrives {
                while matches!(direct.outcome(&sent).await, Ok(Fate::Unknown)) {}
            }
            proxy.cut().await;
            proxy.restore(way);
        };
        let (written, ()) = tokio::join!(writing, cutting);
        match written {
            Err(SinkError::Ambiguous {
                request: Some(named),
            }) => assert_eq!(named, id),
            other => panic!("not ambiguous: {other:?}"),
        }
        claim_until_done(&sink, token + 1).await;
        let fate = sink.outcome(&sent).await.expect("a fate");
        assert_eq!(matches!(fate, Fate::Applied(_)), arrives, "{fate:?}");
        assert_eq!(fate == Fate::Absent, !arrives, "{fate:?}");
    }
}

async fn claim_until_done(sink: &RedisSink<ConnectionManager>, token: i64) {
    while let Err(error) = sink.claim(&fence(token)).await {
        assert!(error.is_retryable(), "{error}");
    }
}

/// Nothing was sent, so that it can be repeated; without a request, a client may have sent it twice.
#[tokio::test]
async fn a_server_that_is_gone_is_another_try() {
    let mut server = Redis::start().expect("a server");
    let sink = RedisSink::new(manager(&server.url()).await);
    let batch = || RedisBatch::new().incr("count", 1);
    sink.claim(&fence(33)).await.expect("a claim");
    server.stop().expect("a stop");
    let refused = loop {
        match sink.write(&fence(33), &request("r1"), batch().into()).await {
            // Until the client has noticed.
            Err(SinkError::Ambiguous { .. }) => {}
            other => break other,
        }
    };
    assert!(matches!(refused, Err(SinkError::Retry(_))), "{refused:?}");
    holder(33, async |guard| {
        let unnamed = guard.fence(&sink).apply::<[i64; 1]>(batch()).await;
        assert!(
            matches!(unnamed, Err(SinkError::Ambiguous { request: None })),
            "{unnamed:?}"
        );
    })
    .await;
    server.restart().expect("a restart");
    claim_until_done(&sink, 33).await;
    let again = sink
        .write(&fence(33), &request("r1"), batch().into())
        .await
        .expect("a write");
    assert_eq!(again.into_answer().as_json(), "[1]");
}

/// What the fence and the requests are worth: they are as durable as the data.
#[tokio::test]
async fn fences_and_requests_outlive_a_crash_of_the_server() {
    let mut server = Redis::start().expect("a server");
    let batch = || RedisBatch::new().incr("count", 1);
    let sink = RedisSink::new(connect(&server.url()).await);
    sink.write(&fence(34), &request("r1"), batch().into())
        .await
        .expect("a write");
    server.restart().expect("a restart");
    let sink = RedisSink::new(connect(&server.url()).await);
    let stale = sink.claim(&fence(33)).await;
    assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
    let again = sink
        .write(&fence(34), &request("r1"), batch().into())
        .await
        .expect("a replay");
    assert!(again.is_replayed());
}

/// Wherever the future is dropped, the script ran wholly or not at all.
#[tokio::test]
async fn dropped_calls_leave_nothing_half_done() {
    let server = Server::new().await;
    for round in 0..60 {
        let (older, newer) = (fence(2 * round + 1), fence(2 * round + 2));
        let sent = request(&format!("r{round}")).sent_under(older.clone());
        let before = (server.count("one").await, server.count("two").await);
        assert_eq!(before.0, before.1);
        let batch = server.add("one", 1).incr(server.key("two"), 1);
        let polls = usize::try_from(round % 4).expect("a few");
        let _dropped = cancel_after(polls, server.sink.write(&older, &sent, batch.into())).await;
        let _dropped = cancel_after(polls, server.sink.claim(&newer)).await;
        server.sink.claim(&newer).await.expect("a claim");
        let applied = match server.sink.outcome(&sent).await.expect("a fate") {
            Fate::Applied(_) => 1,
            Fate::Absent => 0,
            Fate::Unknown => panic!("unknown although a newer holder has claimed"),
        };
        let after = (server.count("one").await, server.count("two").await);
        assert_eq!(after, (before.0 + applied, before.1 + applied));
    }
}
