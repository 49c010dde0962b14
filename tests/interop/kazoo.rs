use fenced_tests::{Peer, shared};

use crate::crowd;
use crate::setup::{Grant, Meeting, PATIENCE};

/// Counts only Kazoo's own nodes.
async fn stock() -> Peer {
    let peer = Peer::kazoo(&shared::zookeeper_address()).await;
    peer.unwrap_or_else(|error| panic!("{error}"))
}

/// With `extra_lock_patterns=["-lock-"]`.
async fn heedful() -> Peer {
    let mut peer = stock().await;
    assert_eq!(peer.ask("heed -lock-").await, "heeded");
    peer
}

#[tokio::test]
#[ignore = "interop: Kazoo"]
async fn we_wait_for_stock_kazoo() {
    Meeting::new().await.is_kept_out(&mut stock().await).await;
}

#[tokio::test]
#[ignore = "interop: Kazoo"]
async fn kazoo_waits_for_us_when_told_our_names() {
    let (meeting, mut peer) = (Meeting::new().await, heedful().await);
    meeting.keeps_out(&mut peer).await;
    meeting.is_kept_out(&mut peer).await;
}

/// What the documentation warns of; should Kazoo ever learn it, it can say so.
#[tokio::test]
#[ignore = "interop: Kazoo"]
async fn stock_kazoo_does_not_wait_for_us() {
    let (meeting, mut peer) = (Meeting::new().await, stock().await);
    let lease = meeting.acquire(PATIENCE).await.expect("a free lock");
    let grant = Grant::parse(&peer.ask(&meeting.order()).await);
    assert!(lease.loss().is_none(), "two holders, and we are one");
    assert_eq!(
        meeting.queue_of(2).await,
        [lease.token().get(), grant.czxid]
    );
    lease.release().await.expect("a lock of ours");
}

#[tokio::test]
#[ignore = "interop: Kazoo"]
async fn three_processes_each_never_overlap() {
    let mut peers = crowd::ours().await;
    for _ in 0..crowd::PROCESSES {
        peers.push(heedful().await);
    }
    crowd::record(peers).await;
}
