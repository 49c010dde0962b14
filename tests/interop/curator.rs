use fenced::section;
use fenced_tests::{Peer, shared};

use crate::crowd;
use crate::setup::{Grant, Meeting, PATIENCE};

async fn peer() -> Peer {
    let peer = Peer::curator(&shared::zookeeper_address()).await;
    peer.unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test]
#[ignore = "interop: Curator"]
async fn we_and_a_mutex_of_curators_exclude_each_other() {
    let (meeting, mut peer) = (Meeting::new().await, peer().await);
    meeting.keeps_out(&mut peer).await;
    meeting.is_kept_out(&mut peer).await;
}

#[tokio::test]
#[ignore = "interop: Curator"]
async fn three_processes_each_never_overlap() {
    let mut peers = crowd::ours().await;
    for _ in 0..crowd::PROCESSES {
        peers.push(peer().await);
    }
    crowd::record(peers).await;
}

#[tokio::test]
#[ignore = "interop: Curator"]
async fn curator_asks_us_for_the_lock() {
    let (meeting, mut peer) = (Meeting::new().await, peer().await);
    let path = meeting.path.as_str();
    let held = section(&meeting.locks, path).run(async |guard| {
        let queue = meeting.locks.inspect(&meeting.path).await.expect("a queue");
        let node = format!("{path}/{}", queue.contenders[0].name);
        assert!(!guard.revoke_requested());
        assert_eq!(peer.ask(&format!("revoke {node}")).await, "asked");
        let asked = tokio::time::timeout(PATIENCE, guard.disturbed()).await;
        asked.expect("we are told");
        guard.revoke_requested()
    });
    assert!(held.await.expect("a lock that was not lost"));
    Grant::parse(&peer.ask(&meeting.order()).await);
}

#[tokio::test]
#[ignore = "interop: Curator"]
async fn we_ask_curator_for_the_lock() {
    let (meeting, mut peer) = (Meeting::new().await, peer().await);
    let grant = Grant::parse(&peer.ask(&meeting.order()).await);
    let asked = meeting.locks.ask_to_release(&meeting.path, grant.czxid);
    let asked = asked.await.expect("the holder is there");
    assert!(grant.node.ends_with(&asked.name), "{asked:?}");
    assert_eq!(peer.hear().await, "wanted");
    assert_eq!(peer.ask("release").await, "released");
    let again = meeting.locks.ask_to_release(&meeting.path, grant.czxid);
    let error = again.await.expect_err("nobody is there");
    assert!(error.to_string().contains("no contender"), "{error}");
}
