//! Sessions that end, are replaced, or are too small for what is watched.

use std::time::{Duration, Instant};

use fenced::LossReason;
use fenced::zookeeper::{SessionEvent, SessionEvents, ZkError, ZkLocks};
use fenced_tests::{Operation, Proxy, shared};
use futures::future::join_all;

use crate::setup::{Ground, acquire, eventually, path, soon};
use crate::wire;

async fn over(events: &mut SessionEvents) -> LossReason {
    soon("the end of the session", async {
        loop {
            if let Some(SessionEvent::Over(reason)) = events.next().await {
                return reason;
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_session_the_server_ends_is_replaced() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("expired"));
    let mut events = locks.events();
    let held = acquire(&locks, &path).await;
    let waiting = acquire(&locks, &path);
    let expiring = async {
        let session = ground.owner(&path).await;
        wire::close_session(&ground.server, session).await;
        let loss = soon("the loss", held.lost()).await;
        assert_eq!(loss.reason, LossReason::SessionExpired);
    };
    let (next, ()) = tokio::join!(waiting, expiring);
    assert_eq!(over(&mut events).await, LossReason::SessionExpired);
    assert!(next.token() > held.token());
    next.release().await.unwrap();
    ground.queue_of(&path, 0).await;
}

#[tokio::test]
async fn a_server_that_hands_out_another_session_is_a_loss() {
    let ground = Ground::shared().await;
    let forger = wire::Forger::start(&ground.server).await;
    let locks = ground.locks_at(&forger.address()).await;
    let path = path("replaced");
    let mut events = locks.events();
    let held = acquire(&locks, &path).await;
    forger.cut();
    let loss = soon("the loss", held.lost()).await;
    assert_eq!(loss.reason, LossReason::SessionReplaced);
    assert_eq!(over(&mut events).await, LossReason::SessionReplaced);
}

#[tokio::test]
async fn more_watches_than_one_session_bears_take_several() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let builder = ground.builder().session_timeout(Duration::from_secs(30));
    let locks = builder.connect(&proxy.address()).await.unwrap();
    let long = "x".repeat(400);
    let paths: Vec<_> = (0..300).map(|i| path(&format!("{long}/{i}"))).collect();
    let leases = join_all(paths.iter().map(|path| acquire(&locks, path))).await;
    proxy
        .wait_for(|traffic| traffic.count(Operation::GetData) == leases.len())
        .await;
    assert!(proxy.traffic().connections() > 1);
    proxy.refuse().await;
    proxy.cut().await;
    eventually("suspect", async || {
        leases.iter().all(fenced::Lease::is_suspect).then_some(())
    })
    .await;
    proxy.accept().await;
    eventually("confirmed", async || {
        let is_well = |lease: &fenced::Lease| !lease.is_suspect() && lease.loss().is_none();
        leases.iter().all(is_well).then_some(())
    })
    .await;
    for released in join_all(leases.into_iter().map(fenced::Lease::release)).await {
        released.unwrap();
    }
}

/// One of the addresses has no route, so that trying it fails at once.
#[tokio::test]
async fn a_network_without_a_route_is_given_up() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let timeout = Duration::from_secs(2);
    let builder = ground.builder().session_timeout(timeout);
    let address = format!("{},[2001:db8::1]:2181", proxy.address());
    let locks = builder.connect(&address).await.unwrap();
    let mut events = locks.events();
    let lease = acquire(&locks, &path("no-route")).await;
    let started = Instant::now();
    proxy.refuse().await;
    proxy.cut().await;
    let loss = soon("the loss", lease.lost()).await;
    assert_eq!(loss.reason, LossReason::DeadlinePassed);
    assert_eq!(over(&mut events).await, LossReason::DeadlinePassed);
    assert!(started.elapsed() < timeout * 3, "{:?}", started.elapsed());
    proxy.accept().await;
    let next = acquire(&locks, &path("no-route")).await;
    next.release().await.unwrap();
}

#[tokio::test]
async fn no_route_at_all_is_told_in_time() {
    let started = Instant::now();
    let builder = ZkLocks::builder()
        .session_timeout(Duration::from_millis(400))
        .connect_timeout(Duration::from_secs(2));
    let error = builder.connect("[2001:db8::1]:2181").await.unwrap_err();
    assert!(matches!(error, ZkError::Unreachable { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
}
