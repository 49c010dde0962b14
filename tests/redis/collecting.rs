//! What is forgotten, and what must not be.

use std::time::Duration;

use fenced::redis::RedisFenced;
use fenced::{Fate, Fence, FencingSink, Mode, SinkError};

use crate::holder::holder;
use crate::server::{SKU, Server, fence, request, token};

fn other(resource: usize, number: i64) -> Fence {
    Fence::new(format!("/locks/{resource}"), token(number))
}

fn is_stale<T: std::fmt::Debug>(result: &Result<T, SinkError>) -> bool {
    matches!(result, Err(SinkError::Stale { .. }))
}

#[tokio::test]
async fn fences_below_the_floor_are_collected_and_stay_refused() {
    let server = Server::new().await;
    let sink = &server.sink;
    for resource in 0..1_500_usize {
        let number = i64::try_from(resource).expect("a few") + 1;
        sink.claim(&other(resource, number)).await.expect("a claim");
    }
    let collected = sink.collect(token(1_001)).await.expect("a collection");
    assert_eq!(collected.fences, 1_000);
    // A fence, what was seen of its tokens, and the floor.
    assert_eq!(
        server.ask::<i64>(&["HLEN", &server.fences()]).await,
        2 * 500 + 1
    );
    assert_eq!(sink.collect(token(1)).await.expect("another").fences, 0);
    for resource in [0, 999] {
        let stale = sink.claim(&other(resource, 1_000)).await;
        assert!(is_stale(&stale), "{stale:?}");
        let claimed = other(resource, 1_000).claimed(true);
        let stale = sink
            .write(&claimed, &request("r"), server.add("x", 1).into())
            .await;
        assert!(is_stale(&stale), "{stale:?}");
        sink.claim(&other(resource, 1_001)).await.expect("a claim");
    }
    let stale = sink.claim(&other(1_200, 1_200)).await;
    assert!(is_stale(&stale), "{stale:?}");
}

/// A reader's new fence remembers that the writers of before were collected.
#[tokio::test]
async fn a_reader_does_not_readmit_what_was_collected() {
    let server = Server::new().await;
    let sink = &server.sink;
    let reader = |number| {
        let mut fence = fence(number);
        fence.mode = Mode::Shared;
        fence
    };
    sink.claim(&fence(7)).await.expect("a writer");
    assert_eq!(
        sink.collect(token(8)).await.expect("a collection").fences,
        1
    );
    sink.claim(&reader(10)).await.expect("a newer reader");
    let stale = sink.claim(&reader(6)).await;
    assert!(is_stale(&stale), "{stale:?}");
    sink.claim(&reader(9))
        .await
        .expect("a reader above the floor");
}

#[tokio::test]
async fn a_request_below_the_floor_is_not_said_to_be_absent() {
    let server = &Server::new().await;
    let sent = request("r1").sent_under(fence(7));
    server.sink.claim(&fence(7)).await.expect("a claim");
    server.sink.collect(token(8)).await.expect("a collection");
    server.sink.claim(&fence(10)).await.expect("a claim");
    let fate =
        |sent: fenced::Request| async move { server.sink.outcome(&sent).await.expect("a fate") };
    assert_eq!(fate(sent).await, Fate::Unknown);
    let sent = request("r1").sent_under(fence(9));
    assert_eq!(fate(sent).await, Fate::Absent);
}

/// A request that expired is not there, as one that never was; only of the latter can be said so.
#[tokio::test]
async fn an_expired_request_is_not_said_to_be_absent() {
    let server = Server::new().await;
    let kept = Duration::from_millis(300);
    let sink = server.sink.clone().keep_requests(kept);
    let sent = |id| request(id).sent_under(fence(33));
    sink.write(&fence(33), &sent("r1"), server.add("count", 1).into())
        .await
        .expect("a write");
    sink.claim(&fence(34)).await.expect("a claim");
    let fate = sink.outcome(&sent("never sent")).await.expect("a fate");
    assert!(matches!(fate, Fate::Absent | Fate::Unknown), "{fate:?}");
    loop {
        match sink.outcome(&sent("r1")).await.expect("a fate") {
            Fate::Applied(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            Fate::Unknown => break,
            Fate::Absent => panic!("it was applied"),
        }
    }
    sink.claim(&fence(36)).await.expect("a claim");
    let fate = sink.outcome(&sent("r1")).await.expect("a fate");
    assert_eq!(fate, Fate::Unknown, "it was applied, long ago");
    let recent = request("r1").sent_under(fence(35));
    let fate = server.sink.outcome(&recent).await.expect("a fate");
    assert_eq!(
        fate,
        Fate::Absent,
        "nothing of that holder can have expired"
    );
    let keys = server.keys().await;
    assert!(!keys.iter().any(|key| key.contains("request")), "{keys:?}");
}

#[tokio::test]
async fn a_reset_is_audited() {
    let server = Server::new().await;
    let sink = &server.sink;
    sink.claim(&fence(1_000)).await.expect("a claim");
    let lost = sink.claim(&fence(7)).await;
    assert!(is_stale(&lost), "the ensemble lost its data: {lost:?}");
    sink.reset(SKU, token(5), " ").await.expect_err("no reason");
    assert!(is_stale(&sink.claim(&fence(7)).await), "nothing was reset");
    sink.reset(SKU, token(5), "restored the ensemble")
        .await
        .expect("a reset");
    assert!(
        is_stale(&sink.claim(&fence(4)).await),
        "older than the reset"
    );
    holder(7, async |guard| {
        let stock = guard.fence(sink);
        stock.claim().await.expect("a claim");
        stock
            .apply::<[i64; 1]>(server.add("count", 1))
            .await
            .expect("a write");
    })
    .await;
    // What was sent before the reset under such a number says nothing.
    let sent = request("r1").sent_under(fence(6));
    assert_eq!(sink.outcome(&sent).await.expect("a fate"), Fate::Unknown);
    let stream = format!("fenced:{{{}}}:resets", server.tag);
    let entries: Vec<(String, Vec<String>)> = server.ask(&["XRANGE", &stream, "-", "+"]).await;
    let expected = [
        "resource",
        SKU,
        "old",
        "1000",
        "new",
        "5",
        "reason",
        "restored the ensemble",
    ];
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].1, expected);
}
