//! A network that swallows what is sent, or what is answered.

use std::time::Duration;

use fenced::redis::{RedisFenced, RedisSink};
use fenced::{Fate, FencingSink, SinkError};
use fenced_tests::shared::redis_url;
use fenced_tests::{Proxy, Way};

use crate::holder::holder;
use crate::server::{Server, address, connect, fence, request, token};

/// The test's keys, over a network that can fail.
async fn impatient(server: &Server) -> (Proxy, RedisSink) {
    let proxy = Proxy::start(address()).expect("a proxy");
    let url = redis_url().replace(&address(), &proxy.address());
    let sink = RedisSink::new(connect(&url).await)
        .tag(&server.tag)
        .answer_timeout(Duration::from_millis(500));
    sink.claim(&fence(1)).await.expect("a claim");
    (proxy, sink)
}

fn is_retry<T: std::fmt::Debug>(answer: &Result<T, SinkError>) -> bool {
    matches!(answer, Err(SinkError::Retry(cause)) if cause.to_string().contains("did not answer"))
}

#[tokio::test]
async fn what_changes_no_data_can_be_repeated() {
    let server = Server::new().await;
    let (proxy, sink) = impatient(&server).await;
    for way in [Way::ToServer, Way::ToClient] {
        proxy.silence(way);
        let claimed = sink.claim(&fence(2)).await;
        assert!(is_retry(&claimed), "{claimed:?}");
        let fate = sink.outcome(&request("r1")).await;
        assert!(is_retry(&fate), "{fate:?}");
        let collected = sink.collect(token(1)).await;
        assert!(is_retry(&collected), "{collected:?}");
        let read = holder(2, async |guard| {
            guard.fence(&sink).get(server.key("count")).await
        });
        let read = read.await;
        assert!(is_retry(&read), "{read:?}");
        proxy.restore(way);
        sink.claim(&fence(2)).await.expect("a claim");
    }
}

#[tokio::test]
async fn a_write_in_silence_is_ambiguous_and_its_fate_is_told_later() {
    let server = Server::new().await;
    for (token, way, arrives) in [(2, Way::ToServer, false), (30, Way::ToClient, true)] {
        let (proxy, sink) = impatient_at(&server, token).await;
        let id = format!("r{token}");
        let (named, unnamed) = holder(token, async |guard| {
            let stock = guard.fence(&sink);
            proxy.silence(way);
            let named = stock
                .run::<[i64; 1]>(request(&id), server.add("named", 1))
                .await;
            (
                named,
                stock.apply::<[i64; 1]>(server.add("unnamed", 1)).await,
            )
        })
        .await;
        assert!(
            matches!(&named, Err(SinkError::Ambiguous { request: Some(named) }) if *named == id),
            "{named:?}"
        );
        assert!(
            matches!(unnamed, Err(SinkError::Ambiguous { request: None })),
            "{unnamed:?}"
        );
        let sent = request(&id).sent_under(fence(token));
        if !arrives {
            assert_eq!(
                server.sink.outcome(&sent).await.expect("a fate"),
                Fate::Unknown
            );
        }
        // What was held back never arrives.
        proxy.cut().await;
        server
            .sink
            .claim(&fence(token + 1))
            .await
            .expect("a newer claim");
        match server.sink.outcome(&sent).await.expect("a fate") {
            Fate::Applied(answer) => assert!(arrives && answer.as_json() == "[2]"),
            Fate::Absent => assert!(!arrives),
            Fate::Unknown => panic!("unknown although a newer holder has claimed"),
        }
        let (newer, again) = (fence(token + 1), request(&id));
        let repeated = server
            .sink
            .write(&newer, &again, server.add("named", 1).into());
        let repeated = repeated.await.expect("a repetition");
        assert_eq!(repeated.is_replayed(), arrives);
    }
    assert_eq!(
        (server.count("named").await, server.count("unnamed").await),
        (2, 1)
    );
}

async fn impatient_at(server: &Server, token: i64) -> (Proxy, RedisSink) {
    server.sink.claim(&fence(token - 1)).await.expect("a claim");
    let proxy = Proxy::start(address()).expect("a proxy");
    let url = redis_url().replace(&address(), &proxy.address());
    let sink = RedisSink::new(connect(&url).await)
        .tag(&server.tag)
        .answer_timeout(Duration::from_millis(500));
    (proxy, sink)
}

/// Late, and under an older token: the server itself refuses it.
#[tokio::test]
async fn a_write_that_arrives_after_a_newer_claim_is_refused() {
    let server = Server::new().await;
    let (proxy, sink) = impatient(&server).await;
    proxy.silence(Way::ToServer);
    let late = sink
        .write(&fence(2), &request("late"), server.add("count", 1).into())
        .await;
    assert!(matches!(late, Err(SinkError::Ambiguous { .. })), "{late:?}");
    server.sink.claim(&fence(3)).await.expect("a claim");
    proxy.restore(Way::ToServer);
    // The same connection, so that what was held back has arrived before.
    let stale = sink.claim(&fence(2)).await;
    assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
    assert_eq!(server.count("count").await, 0);
    let sent = request("late").sent_under(fence(2));
    assert_eq!(sink.outcome(&sent).await.expect("a fate"), Fate::Absent);
}

#[tokio::test]
async fn every_call_takes_one_round_trip() {
    const DELAY: Duration = Duration::from_millis(100);
    let server = Server::new().await;
    let proxy = Proxy::start(address()).expect("a proxy");
    let url = redis_url().replace(&address(), &proxy.address());
    let sink = RedisSink::new(connect(&url).await).tag(&server.tag);
    let mut token = 0;
    // The first time, the server has to learn the scripts.
    for delay in [Duration::ZERO, DELAY] {
        proxy.delay(Way::ToClient, delay);
        token += 1;
        holder(token, async |guard| {
            let stock = guard.fence(&sink);
            let started = std::time::Instant::now();
            stock.claim().await.expect("a claim");
            stock.get(server.key("count")).await.expect("a read");
            let id = format!("r{token}");
            for _ in 0..2 {
                let written = stock
                    .run::<[i64; 1]>(request(&id), server.add("count", 1))
                    .await;
                written.expect("a write");
            }
            stock
                .apply::<[i64; 1]>(server.add("count", 1))
                .await
                .expect("a write");
            let _known = sink.outcome(&request(&id)).await.expect("a fate");
            let trips = started.elapsed().as_millis() / DELAY.as_millis();
            assert!(
                delay.is_zero() || (6..9).contains(&trips),
                "6 calls took {trips} round trips"
            );
        })
        .await;
    }
}
