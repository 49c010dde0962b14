//! A future dropped at every await point leaves no node and no watch.

use std::time::Duration;

use fenced::section;
use fenced_core::testing::cancel_after;
use fenced_tests::ZooKeeper;

use crate::setup::{Ground, PATIENCE, acquire, eventually, path};

#[tokio::test]
async fn a_free_lock() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("free"));
    let mut dropped = 0;
    loop {
        let section = section(&locks, &path).timeout(PATIENCE).run(async |_| {
            tokio::task::yield_now().await;
        });
        let ran = cancel_after(dropped, section).await;
        ground.queue_of(&path, 0).await;
        match ran {
            Ok(ran) => break ran.unwrap(),
            Err(_) => dropped += 1,
        }
    }
    println!("dropped at {dropped} await points");
    assert!(dropped >= 3);
}

/// Dropped after a time, since a future that waits is not polled.
#[tokio::test]
async fn a_contended_lock() {
    let server = tokio::task::spawn_blocking(ZooKeeper::start).await;
    let server = server.unwrap().unwrap();
    let ground = Ground::on(server.address()).await;
    let (holder, locks) = (ground.locks().await, ground.locks().await);
    let path = path("contended");
    let held = acquire(&holder, &path).await;
    eventually("one watch of the holder", async || {
        (watches(&server) == 1).then_some(())
    })
    .await;
    for step in 0..60_u32 {
        let acquire = section(&locks, &path).timeout(PATIENCE).enter();
        let limit = Duration::from_micros(100) * step;
        assert!(tokio::time::timeout(limit, acquire).await.is_err());
        ground.queue_of(&path, 1).await;
        eventually("no watch left", async || {
            (watches(&server) == 1).then_some(())
        })
        .await;
    }
    held.release().await.unwrap();
    eventually("no watch at all", async || {
        (watches(&server) == 0).then_some(())
    })
    .await;
}

fn watches(server: &ZooKeeper) -> usize {
    let summary = server.four_letter("wchs").unwrap();
    let total = summary.rsplit(':').next().unwrap_or_default();
    total.trim().parse().unwrap_or_else(|_| panic!("{summary}"))
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
