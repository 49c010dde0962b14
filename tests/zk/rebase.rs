//! An ensemble that has lost its data, and what an operator does about it.

use std::time::Duration;

use fenced::zookeeper::ZkLocks;
use fenced::{
    FencingToken, LockError, LockPath, LockRequest, LockService, MemorySink, MemoryWrite, Request,
    SinkError, section,
};
use fenced_tests::ZooKeeper;
use zookeeper_client::{Acls, CreateMode};

use crate::setup::{Ground, PATIENCE, acquire, eventually, path, soon};

/// A section that writes; returns its token.
async fn write(
    locks: &ZkLocks,
    path: &LockPath,
    sink: &MemorySink,
) -> Result<Result<FencingToken, SinkError>, LockError> {
    let writing = section(locks, path).timeout(PATIENCE).run(async |guard| {
        let request = Request::new(format!("request {}", guard.token()), &1);
        let more = MemoryWrite::add("stock", 1);
        guard.fence(sink).write(&request, more).await?;
        Ok(guard.token())
    });
    writing.await
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_data_is_told_and_a_rebase_mends_it() {
    let server = tokio::task::spawn_blocking(ZooKeeper::start).await;
    let mut server = server.unwrap().unwrap();
    let ground = Ground::on(server.address()).await;
    let builder = ground.builder().session_timeout(Duration::from_secs(1));
    let old = builder.clone().connect(&ground.server).await.unwrap();
    let (path, sink) = (path("regressed"), MemorySink::new());
    for _ in 0..50 {
        acquire(&old, &path).await.release().await.unwrap();
    }
    let newest = write(&old, &path, &sink).await.unwrap().unwrap();
    tokio::task::block_in_place(|| server.wipe().and_then(|()| server.restart())).unwrap();

    // Who remembers its own tokens is told at the grant.
    let told = write(&old, &path, &sink).await;
    let Err(LockError::TokenRegressed { token, seen, .. }) = told else {
        panic!("{told:?}");
    };
    assert!(token < seen && seen == newest, "{token} {seen}");
    // Who does not is refused by the resource, and told from then on.
    let new = builder.connect(&ground.server).await.unwrap();
    let refused = write(&new, &path, &sink).await;
    assert!(
        matches!(
            refused,
            Ok(Err(SinkError::Stale { .. })) | Err(LockError::Lost(_))
        ),
        "{refused:?}"
    );
    let told = write(&new, &path, &sink).await;
    assert!(
        matches!(told, Err(LockError::TokenRegressed { .. })),
        "{told:?}"
    );

    let base = new.rebase(newest, "the disks were replaced").await.unwrap();
    assert_eq!(base, newest.get());
    let mut last = newest;
    for locks in [&old, &new, &old] {
        let token = write(locks, &path, &sink).await.unwrap().unwrap();
        assert!(token > last, "{token} after {last}");
        last = token;
    }
    let written = new.inspect(&path).await.unwrap().rebased;
    assert_eq!(written.len(), 1);
    assert!(
        written[0].contains("the disks were replaced"),
        "{written:?}"
    );
    // It is never lowered.
    let lower = FencingToken::try_from(1_i64).unwrap();
    assert_eq!(new.rebase(lower, "by mistake").await.unwrap(), base);
}

#[tokio::test]
async fn whoever_waits_gets_a_token_of_the_new_base() {
    let ground = Ground::shared().await;
    let (holder, waiter) = (ground.locks().await, ground.locks().await);
    let path = path("waiting");
    let held = acquire(&holder, &path).await;
    let above = FencingToken::try_from(held.token().get() + 1_000_000_000).unwrap();
    let waiting = acquire(&waiter, &path);
    let rebasing = async {
        ground.queue_of(&path, 2).await;
        holder.rebase(above, "for a test").await.unwrap();
        held.release().await.unwrap();
    };
    let (next, ()) = tokio::join!(waiting, rebasing);
    assert!(next.token() > above);
    next.release().await.unwrap();
    let half = FencingToken::MAX;
    let refused = holder.rebase(half, "too much").await.unwrap_err();
    assert!(refused.to_string().contains("leaves no room"), "{refused}");
}

#[tokio::test]
async fn a_base_that_is_no_number_grants_nothing() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("base"));
    acquire(&locks, &path).await.release().await.unwrap();
    let lasting = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let node = format!("{}/fenced/base", ground.root);
    ground
        .admin
        .mkdir(&format!("{}/fenced", ground.root), &lasting)
        .await
        .unwrap();
    ground
        .admin
        .create(&node, b"-7\x1b", &lasting)
        .await
        .unwrap();
    let refused = locks.acquire(LockRequest::new(&path, PATIENCE)).await;
    let error = refused.expect_err("no token is safe");
    assert!(matches!(error, LockError::Refused { .. }), "{error}");
    assert!(error.to_string().contains(&node), "{error}");
    ground.queue_of(&path, 0).await;
    // An operator mends that, too.
    let above = FencingToken::try_from(7_i64).unwrap();
    locks.rebase(above, "it was damaged").await.unwrap();
    let lease = eventually("a grant", async || {
        locks.acquire(LockRequest::new(&path, PATIENCE)).await.ok()
    })
    .await;
    soon("the release", lease.release()).await.unwrap();
}
