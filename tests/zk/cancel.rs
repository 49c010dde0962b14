//! A future dropped at every await point leaves no node and no watch.

use std::time::Duration;

use fenced::section;
use fenced_core::testing::cancel_after;
use fenced_tests::ZooKeeper;

use crate::setup::{Ground, PATIENCE, acquire, eventually, path, watches};

async fn own_server() -> (ZooKeeper, Ground) {
    let server = tokio::task::spawn_blocking(ZooKeeper::start).await;
    let server = server.unwrap().unwrap();
    let ground = Ground::on(server.address()).await;
    (server, ground)
}

/// The section waits at every point, so each is visited.
#[tokio::test]
async fn a_free_lock() {
    let (server, ground) = own_server().await;
    let (locks, path) = (ground.locks().await, path("free"));
    let mut dropped = 0;
    loop {
        let section = section(&locks, &path).timeout(PATIENCE).run(async |_| {
            tokio::task::yield_now().await;
            // Longer than a section does without a watch on its node.
            tokio::time::sleep(Duration::from_millis(20)).await;
        });
        let ran = cancel_after(dropped, section).await;
        ground.queue_of(&path, 0).await;
        eventually("no watch left", async || {
            (watches(&server, &path) == 0).then_some(())
        })
        .await;
        match ran {
            Ok(ran) => break ran.unwrap(),
            Err(_) => dropped += 1,
        }
    }
    println!("dropped at {dropped} await points");
    assert!(dropped >= 4);
}

/// Dropped after a time, since what the waiter waits for is done by its session, step by step.
#[tokio::test]
async fn a_contended_lock() {
    let (server, ground) = own_server().await;
    let (holder, locks) = (ground.locks().await, ground.locks().await);
    let path = path("contended");
    let held = acquire(&holder, &path).await;
    let only = |count| {
        let (server, path) = (&server, &path);
        async move {
            eventually(&format!("{count} watches"), async || {
                (watches(server, path) == count).then_some(())
            })
            .await;
        }
    };
    only(1).await;
    for step in 0..60_u32 {
        let acquire = section(&locks, &path).timeout(PATIENCE).enter();
        let limit = Duration::from_micros(100) * step;
        assert!(tokio::time::timeout(limit, acquire).await.is_err());
        ground.queue_of(&path, 1).await;
        only(1).await;
    }
    held.release().await.unwrap();
    only(0).await;
}

#[tokio::test]
async fn a_dropped_connect_leaves_no_session() {
    for polls in 0..4 {
        let ground = Ground::shared().await;
        let connecting = ground.builder().connect(&ground.server);
        if let Ok(opened) = cancel_after(polls, connecting).await {
            opened.unwrap().close().await.unwrap();
            return;
        }
    }
}
