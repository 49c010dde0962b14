//! The network between us and the server.

use std::time::{Duration, Instant};

use fenced::zookeeper::SessionEvent;
use fenced::{LockError, LockRequest, LockService, LossReason};
use fenced_tests::{Fault, Operation, Proxy, Way, shared};
use tokio::time::sleep;

use crate::setup::{Ground, PATIENCE, acquire, eventually, path, soon};

const TIMEOUT: Duration = Duration::from_secs(2);

async fn behind_proxy(ground: &Ground) -> (Proxy, fenced::zookeeper::ZkLocks) {
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let builder = ground.builder().session_timeout(TIMEOUT);
    let locks = builder.connect(&proxy.address()).await.unwrap();
    (proxy, locks)
}

/// Each fault at each request of a whole section.
#[tokio::test]
async fn a_section_survives_a_cut_at_any_step() {
    let ground = Ground::shared().await;
    let (proxy, locks) = behind_proxy(&ground).await;
    for operation in [
        Operation::Create,
        Operation::GetChildren,
        Operation::GetData,
        Operation::Delete,
    ] {
        for fault in [Fault::DropReply, Fault::CutAtReply, Fault::CutAtRequest] {
            let path = path(&format!("{operation:?}-{fault:?}"));
            acquire(&locks, &path).await.release().await.unwrap();
            let struck = proxy.once(fault, move |request| request.operation == operation);
            let lease = acquire(&locks, &path).await;
            sleep(Duration::from_millis(20)).await;
            assert_eq!(lease.loss(), None, "{operation:?} {fault:?}");
            // A silent connection may cost the lease its deadline, never its cleanup.
            let _ = lease.release().await;
            struck.happened().await;
            ground.queue_of(&path, 0).await;
        }
    }
}

#[tokio::test]
async fn a_blip_makes_the_lease_suspect_and_confirms_it() {
    let ground = Ground::shared().await;
    let (proxy, locks) = behind_proxy(&ground).await;
    let mut events = locks.events();
    let lease = acquire(&locks, &path("blip")).await;
    proxy.refuse().await;
    proxy.cut().await;
    eventually("suspect", async || lease.is_suspect().then_some(())).await;
    // The first connection may be told late.
    while events.next().await != Some(SessionEvent::Suspect) {}
    proxy.accept().await;
    eventually("confirmed", async || (!lease.is_suspect()).then_some(())).await;
    assert_eq!(events.next().await, Some(SessionEvent::Connected));
    assert_eq!(lease.loss(), None);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_node_deleted_during_an_outage_is_a_loss() {
    let ground = Ground::shared().await;
    let (proxy, locks) = behind_proxy(&ground).await;
    let path = path("outage");
    let lease = acquire(&locks, &path).await;
    proxy.refuse().await;
    proxy.cut().await;
    let queue = ground.queue(&path).await;
    ground.delete(&path, &queue[0]).await;
    proxy.accept().await;
    let loss = soon("the loss", lease.lost()).await;
    assert_eq!(loss.reason, LossReason::NodeDeleted);
}

#[tokio::test]
async fn a_silent_network_ends_the_lease_before_another_is_granted() {
    for way in [Way::ToServer, Way::ToClient] {
        let ground = Ground::shared().await;
        let (proxy, locks) = behind_proxy(&ground).await;
        let (other, path) = (ground.locks().await, path("silence"));
        let started = Instant::now();
        let lease = acquire(&locks, &path).await;
        proxy.silence(way);
        let waiting = acquire(&other, &path);
        let losing = async {
            let loss = soon("the loss", lease.lost()).await;
            (loss.reason, started.elapsed())
        };
        let next = async {
            let next = waiting.await;
            assert!(lease.loss().is_some(), "two holders");
            next
        };
        let ((reason, after), next) = tokio::join!(losing, next);
        assert_eq!(reason, LossReason::DeadlinePassed);
        assert!(after < TIMEOUT * 2, "told after {after:?}");
        assert!(next.token() > lease.token());
        next.release().await.unwrap();
        proxy.restore(way);
        // Back on a new session.
        acquire(&locks, &path).await.release().await.unwrap();
        ground.queue_of(&path, 0).await;
    }
}

#[tokio::test]
async fn an_acquire_with_the_network_down_takes_its_budget() {
    let ground = Ground::shared().await;
    let (proxy, locks) = behind_proxy(&ground).await;
    proxy.refuse().await;
    proxy.cut().await;
    for budget in [Duration::from_millis(300), Duration::from_secs(3)] {
        let path = path("down");
        let started = Instant::now();
        let refused = locks.acquire(LockRequest::new(&path, budget)).await;
        let waited = started.elapsed();
        let error = refused.expect_err("no network");
        assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
        assert!(
            waited >= budget && waited < budget + Duration::from_secs(1),
            "{waited:?}"
        );
    }
    proxy.accept().await;
    acquire(&locks, &path("down"))
        .await
        .release()
        .await
        .unwrap();
    ground.queue_of(&path("down"), 0).await;
}

#[tokio::test]
async fn waiters_go_on_waiting_on_the_next_session() {
    let ground = Ground::shared().await;
    let (proxy, locks) = behind_proxy(&ground).await;
    let (other, path) = (ground.locks().await, path("requeue"));
    let mut events = locks.events();
    let held = acquire(&other, &path).await;
    let waiting = acquire(&locks, &path);
    let expiring = async {
        let before = ground.queue_of(&path, 2).await;
        proxy.refuse().await;
        proxy.cut().await;
        ground.queue_of(&path, 1).await;
        soon("the end of the session", async {
            while !matches!(events.next().await, Some(SessionEvent::Over(_))) {}
        })
        .await;
        proxy.accept().await;
        let after = ground.queue_of(&path, 2).await;
        assert_ne!(before[1], after[1]);
        held.release().await.unwrap();
    };
    let (lease, ()) = tokio::join!(waiting, expiring);
    assert_eq!(lease.loss(), None);
    lease.release().await.unwrap();
    ground.queue_of(&path, 0).await;
}

#[tokio::test]
async fn a_cancelled_acquire_in_an_outage_leaves_nothing() {
    let ground = Ground::shared().await;
    let (proxy, locks) = behind_proxy(&ground).await;
    let path = path("zombie");
    acquire(&locks, &path).await.release().await.unwrap();
    // The server creates the node, and nobody is told.
    let struck = proxy.once(Fault::CutAtReply, |it| it.operation == Operation::Create);
    let request = LockRequest::new(&path, PATIENCE);
    let mut acquiring = Box::pin(locks.acquire(request));
    assert!(futures::poll!(acquiring.as_mut()).is_pending());
    proxy.refuse().await;
    struck.happened().await;
    ground.queue_of(&path, 1).await;
    drop(acquiring);
    proxy.accept().await;
    ground.queue_of(&path, 0).await;
}

#[tokio::test]
async fn a_silence_shorter_than_the_lease_is_no_loss() {
    let ground = Ground::shared().await;
    let (proxy, locks) = behind_proxy(&ground).await;
    for way in [Way::ToServer, Way::ToClient] {
        let lease = acquire(&locks, &path("hush")).await;
        proxy.silence(way);
        sleep(TIMEOUT / 4).await;
        proxy.restore(way);
        sleep(TIMEOUT).await;
        assert_eq!(lease.loss(), None, "{way:?}");
        lease.release().await.unwrap();
    }
}
