//! Peers on the same path, by the names of their nodes.

use std::time::Duration;

use fenced::{LockError, LockRequest, LockService};
use fenced_tests::{Proxy, Request, shared};
use zookeeper_client::{Acls, CreateMode};

use crate::setup::{Ground, acquire, eventually, path, soon};

fn prefix(name: &str) -> String {
    let id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    match name {
        "kazoo" => "6ba7b8109dad11d180b400c04fd430c8__lock__".to_owned(),
        kind => format!("_c_{id}-{kind}"),
    }
}

#[tokio::test]
async fn peers_and_we_exclude_each_other() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("peers"));
    acquire(&locks, &path).await.release().await.unwrap();
    let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    for kind in ["lock-", "latch-", "__READ__", "__WRIT__", "kazoo"] {
        let prefix = format!("{}/{}", ground.directory(&path), prefix(kind));
        let (_, sequence) = ground
            .admin
            .create(&prefix, b"peer", &options)
            .await
            .unwrap();
        let request = LockRequest::new(&path, Duration::from_millis(200));
        let error = locks.acquire(request).await.expect_err(kind);
        let LockError::Timeout { queue, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(queue.holder.as_deref(), Some("peer"));
        let waiting = acquire(&locks, &path);
        let freeing = async {
            ground.queue_of(&path, 2).await;
            let node = format!("{prefix}{sequence}");
            ground.admin.delete(&node, None).await.unwrap();
        };
        let (lease, ()) = tokio::join!(waiting, freeing);
        let queue = ground.queue(&path).await;
        let name = queue[0].split_at(queue[0].len() - 10).0;
        assert!(
            name.starts_with("_c_") && name.ends_with("-lock-"),
            "{name}"
        );
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn foreign_children_are_nobody() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("foreign"));
    acquire(&locks, &path).await.release().await.unwrap();
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for name in ["hello", "0123456789", "ключ🗝", "lock-", "lease-0000000000"] {
        let node = format!("{}/{name}", ground.directory(&path));
        // The server itself refuses what is beyond its character set.
        let _ = ground.admin.create(&node, b"", &options).await;
    }
    acquire(&locks, &path).await.release().await.unwrap();
}

#[tokio::test]
async fn a_peer_asks_for_the_lock_by_the_data_of_its_node() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("revoke"));
    let asked = fenced::section(&locks, &path).run(async |guard| {
        let queue = ground.queue(&path).await;
        let node = format!("{}/{}", ground.directory(&path), queue[0]);
        let request = b"__REVOKE__";
        ground.admin.set_data(&node, request, None).await.unwrap();
        soon("the request", guard.disturbed()).await;
        guard.revoke_requested()
    });
    assert!(asked.await.unwrap());
    ground.queue_of(&path, 0).await;
}

#[tokio::test]
async fn used_up_sequence_numbers_admit_nobody() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("exhausted"));
    acquire(&locks, &path).await.release().await.unwrap();
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let node = format!("{}/x-lock--2147483648", ground.directory(&path));
    ground.admin.create(&node, b"", &options).await.unwrap();
    let request = LockRequest::new(&path, Duration::from_secs(5));
    let error = locks.acquire(request).await.unwrap_err();
    assert!(
        matches!(error, LockError::SequenceExhausted { .. }),
        "{error}"
    );
    eventually("no node of ours", async || {
        (ground.queue(&path).await.len() == 1).then_some(())
    })
    .await;
}

/// Names are a peer's to choose, and the watched ones are what a session can bear only so much of.
#[tokio::test]
async fn an_overlong_name_is_awaited_without_a_watch() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let (locks, path) = (ground.locks_at(&proxy.address()).await, path("overlong"));
    acquire(&locks, &path).await.release().await.unwrap();
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let name = format!("{}-lock-0000000000", "x".repeat(5_000));
    let node = format!("{}/{name}", ground.directory(&path));
    ground.admin.create(&node, b"peer", &options).await.unwrap();
    let waiting = acquire(&locks, &path);
    let freeing = async {
        proxy
            .wait_for(|traffic| traffic.matching(|it| it.path.as_ref() == Some(&node)) > 0)
            .await;
        ground.admin.delete(&node, None).await.unwrap();
    };
    let (lease, ()) = tokio::join!(waiting, freeing);
    let is_watched = |it: &Request| it.watch && it.path.as_ref() == Some(&node);
    assert_eq!(proxy.traffic().matching(is_watched), 0);
    lease.release().await.unwrap();
}
