//! What a connect says that does not succeed, and what it says that does.

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use fenced::zookeeper::{ZkError, ZkLocks};
use fenced::{LockError, LockRequest, LockService, section};
use fenced_tests::{Proxy, shared};

use crate::setup::{Ground, PATIENCE, acquire, path};

async fn refusal(address: &str) -> ZkError {
    let limit = Duration::from_secs(2);
    let started = Instant::now();
    let builder = ZkLocks::builder().connect_timeout(limit);
    let error = builder.connect(address).await.unwrap_err();
    assert!(matches!(error, ZkError::Unreachable { .. }), "{error}");
    assert!(started.elapsed() < limit * 2, "{:?}", started.elapsed());
    error
}

/// Whether an I/O error is behind it.
fn is_of_io(error: &dyn Error) -> bool {
    let mut behind = error.source();
    while let Some(cause) = behind {
        if cause.is::<io::Error>() || cause.is::<std::sync::Arc<io::Error>>() {
            return true;
        }
        behind = cause.source();
    }
    false
}

#[tokio::test]
async fn a_port_that_nobody_listens_at() {
    let error = refusal("127.0.0.1:1").await;
    for part in ["`127.0.0.1:1`", "refused", "check that a server runs"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(is_of_io(&error), "{error:?}");
}

#[tokio::test]
async fn a_host_that_nobody_knows() {
    let error = refusal("no-such-host.invalid:2181").await;
    for part in ["no-such-host.invalid", "cannot be resolved"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(is_of_io(&error), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_none() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let error = refusal(&silent.local_addr().unwrap().to_string()).await;
    for part in ["accepts connections and gives no session", "TLS"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[tokio::test]
async fn the_timeout_that_the_server_grants_is_told() {
    let ground = Ground::shared().await;
    let builder = ground.builder().session_timeout(Duration::from_hours(1));
    let locks = builder.connect(&ground.server).await.unwrap();
    assert_eq!(locks.session_timeout(), Duration::from_mins(1));
    let builder = ground.builder().session_timeout(Duration::from_secs(7));
    let locks = builder.connect(&ground.server).await.unwrap();
    assert_eq!(locks.session_timeout(), Duration::from_secs(7));
}

#[tokio::test]
async fn two_services_of_one_ensemble_are_one() {
    let ground = Ground::shared().await;
    let port = ground.server.rsplit(':').next().unwrap();
    let one = ground.locks().await;
    let two = ground.locks_at(&format!("tcp://127.0.0.1:{port}/")).await;
    assert_eq!(one.id(), two.id());
    let elsewhere = ZkLocks::connect(&ground.server).await.unwrap();
    assert_ne!(one.id(), elsewhere.id());
    let path = path("nested");
    let nested = section(&one, &path).run(async |_| {
        section(&two, &path)
            .timeout(PATIENCE)
            .run(async |_| {})
            .await
    });
    let inner = nested.await.unwrap();
    assert!(
        matches!(inner, Err(LockError::Reentrant { .. })),
        "{inner:?}"
    );
}

#[tokio::test]
async fn who_asks_once_does_not_wait_for_a_server_that_is_away() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let locks = ground.locks_at(&proxy.address()).await;
    let path = path("away");
    acquire(&locks, &path).await.release().await.unwrap();
    proxy.refuse().await;
    proxy.cut().await;
    let started = Instant::now();
    let asked = locks.acquire(LockRequest::new(&path, Duration::ZERO)).await;
    assert!(matches!(asked, Err(LockError::Unavailable { .. })));
    // Half of what connecting may take.
    assert!(
        started.elapsed() < Duration::from_millis(2_500),
        "{:?}",
        started.elapsed()
    );
}

/// The server takes no more than a megabyte, and would cut the connection each time.
#[tokio::test]
async fn labels_without_end_are_cut() {
    let ground = Ground::shared().await;
    let endless = "x".repeat(2_000_000);
    let builder = ground.builder().owner(&endless);
    let locks = builder.connect(&ground.server).await.unwrap();
    let path = path("label");
    let request = LockRequest::new(&path, PATIENCE).label(&endless);
    let held = locks.acquire(request).await.unwrap();
    let node = format!(
        "{}/{}",
        ground.directory(&path),
        ground.queue(&path).await[0]
    );
    let (data, _) = ground.admin.get_data(&node).await.unwrap();
    assert_eq!(data.len(), 256);
    held.release().await.unwrap();
}
