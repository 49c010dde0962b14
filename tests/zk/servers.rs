//! Servers that are paused, restarted, wiped, or never there.

use std::time::{Duration, Instant};

use fenced::zookeeper::{ZkError, ZkLocks};
use fenced::{LockError, LockRequest, LockService, LossReason};
use fenced_tests::{Proxy, Way, ZooKeeper, shared};

use crate::setup::{Ground, PATIENCE, acquire, path, soon};

async fn own_server() -> (ZooKeeper, Ground) {
    let server = tokio::task::spawn_blocking(ZooKeeper::start).await;
    let server = server.unwrap().unwrap();
    let ground = Ground::on(server.address()).await;
    (server, ground)
}

#[tokio::test]
async fn bad_options_are_told_before_anything_is_sent() {
    for (builder, address) in [
        (ZkLocks::builder(), ""),
        (ZkLocks::builder(), "host:0"),
        (ZkLocks::builder(), "host:2181/a//b"),
        (ZkLocks::builder().root("relative"), "host"),
        (ZkLocks::builder().session_timeout(Duration::MAX), "host"),
        (ZkLocks::builder().session_timeout(Duration::ZERO), "host"),
        (ZkLocks::builder().connect_timeout(Duration::ZERO), "host"),
        (
            ZkLocks::builder().acl(fenced::zookeeper::ZkAcl::Creator),
            "host",
        ),
    ] {
        let error = builder.connect(address).await.unwrap_err();
        assert!(matches!(error, ZkError::Options(_)), "{error}");
    }
}

#[tokio::test]
async fn a_paused_server_passes_the_deadline() {
    let (server, ground) = own_server().await;
    let builder = ground.builder().session_timeout(Duration::from_secs(1));
    let locks = builder.connect(&ground.server).await.unwrap();
    let path = path("paused");
    let lease = acquire(&locks, &path).await;
    let started = Instant::now();
    server.pause().unwrap();
    let loss = soon("the loss", lease.lost()).await;
    assert_eq!(loss.reason, LossReason::DeadlinePassed);
    assert!(started.elapsed() < Duration::from_secs(2));
    server.resume().unwrap();
    let next = acquire(&locks, &path).await;
    assert!(next.token() > lease.token());
    next.release().await.unwrap();
    ground.queue_of(&path, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_within_the_timeout_keeps_the_lease() {
    let (mut server, ground) = own_server().await;
    let builder = ground.builder().session_timeout(Duration::from_secs(20));
    let locks = builder.connect(&ground.server).await.unwrap();
    let path = path("restart");
    let lease = acquire(&locks, &path).await;
    let waiting = acquire(&locks, &path);
    let restarting = async {
        tokio::task::block_in_place(|| server.restart()).unwrap();
        crate::setup::eventually("confirmed", async || (!lease.is_suspect()).then_some(())).await;
        assert_eq!(lease.loss(), None);
        let token = lease.token();
        lease.release().await.unwrap();
        token
    };
    let (next, token) = tokio::join!(waiting, restarting);
    assert!(next.token() > token);
    next.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_beyond_the_timeout_ends_the_lease() {
    let (mut server, ground) = own_server().await;
    let builder = ground.builder().session_timeout(Duration::from_secs(1));
    let locks = builder.connect(&ground.server).await.unwrap();
    let path = path("late-restart");
    let lease = acquire(&locks, &path).await;
    tokio::task::block_in_place(|| server.stop()).unwrap();
    let loss = soon("the loss", lease.lost()).await;
    assert_eq!(loss.reason, LossReason::DeadlinePassed);
    tokio::task::block_in_place(|| server.restart()).unwrap();
    let next = acquire(&locks, &path).await;
    assert!(next.token() > lease.token());
    next.release().await.unwrap();
    ground.queue_of(&path, 0).await;
}

#[tokio::test]
async fn a_closed_service_refuses_and_loses() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("closed"));
    let held = acquire(&locks, &path).await;
    let waiter = locks.clone();
    let (answer, closed) = tokio::join!(waiter.acquire(LockRequest::new(&path, PATIENCE)), async {
        tokio::task::yield_now().await;
        locks.close().await
    });
    closed.unwrap();
    assert!(matches!(answer, Err(LockError::Closed { .. })));
    assert_eq!(
        held.loss().map(|loss| loss.reason),
        Some(LossReason::Closed)
    );
    assert_eq!(ground.queue(&path).await, [""; 0]);
    let refused = locks.acquire(LockRequest::new(&path, PATIENCE)).await;
    assert!(matches!(refused, Err(LockError::Closed { .. })));
}

#[tokio::test]
async fn a_shutdown_waits_for_running_sections() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("shutdown"));
    let held = acquire(&locks, &path).await;
    let (shut, released) = tokio::join!(locks.shutdown(PATIENCE), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        held.release().await
    });
    shut.unwrap();
    released.unwrap();
    assert_eq!(ground.queue(&path).await, [""; 0]);
}

#[tokio::test]
async fn the_last_handle_closes_the_session_once_nothing_is_held() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("dropped"));
    let held = acquire(&locks, &path).await;
    drop(locks);
    ground.queue_of(&path, 1).await;
    assert_eq!(held.loss(), None);
    held.release().await.unwrap();
    ground.queue_of(&path, 0).await;
}

#[test]
fn a_blocked_runtime_hides_no_loss_and_stops_no_heartbeat() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let ground = Ground::shared().await;
        let builder = ground.builder().session_timeout(Duration::from_secs(3));
        let locks = builder.connect(&ground.server).await.unwrap();
        let lease = acquire(&locks, &path("blocked")).await;
        std::thread::sleep(Duration::from_secs(6));
        assert_eq!(lease.loss(), None);
        lease.release().await.unwrap();
    });
}

#[test]
fn a_loss_behind_a_blocked_runtime_is_known_at_the_next_look() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let ground = Ground::shared().await;
        let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
        let builder = ground.builder().session_timeout(Duration::from_secs(2));
        let locks = builder.connect(&proxy.address()).await.unwrap();
        let lease = acquire(&locks, &path("blocked-loss")).await;
        proxy.silence(Way::ToServer);
        std::thread::sleep(Duration::from_secs(4));
        let loss = lease.loss().map(|loss| loss.reason);
        assert_eq!(loss, Some(LossReason::DeadlinePassed));
        proxy.restore(Way::ToServer);
    });
}

#[test]
fn a_runtime_that_is_dropped_takes_no_session_with_it() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (ground, locks) = runtime().block_on(async {
        let ground = Ground::shared().await;
        let locks = ground.locks().await;
        (ground, locks)
    });
    runtime().block_on(async {
        let lease = acquire(&locks, &path("other-runtime")).await;
        lease.release().await.unwrap();
    });
    drop(ground.admin);
}
