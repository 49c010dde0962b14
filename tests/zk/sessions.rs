//! Sessions that end, are replaced, or are too small for what is watched.

use std::time::Duration;

use fenced::LossReason;
use fenced::zookeeper::{SessionEvent, SessionEvents};
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
        leases.iter().all(|lease| lease.is_suspect()).then_some(())
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
    proxy.forget_requests();
    locks.close().await.unwrap();
    assert_eq!(proxy.count(Operation::Multi), 0);
}
