//! What a lock costs, counted at the server.

use std::time::Duration;

use fenced::zookeeper::ZkLocks;
use fenced::{LockPath, LockRequest, LockService};
use fenced_tests::{Operation, Proxy, Way, ZooKeeper, shared};
use tokio::time::sleep;

use crate::setup::{Ground, PATIENCE, acquire, eventually, path, soon, watches};

const COUNTED: [Operation; 9] = [
    Operation::Create,
    Operation::Delete,
    Operation::Exists,
    Operation::GetData,
    Operation::SetData,
    Operation::GetChildren,
    Operation::Sync,
    Operation::Multi,
    Operation::RemoveWatches,
];

/// Everything but pings and the session's look at the base of tokens, in the order of
/// [`COUNTED`].
fn counts(proxy: &Proxy) -> [usize; 9] {
    let is_base =
        |path: &Option<String>| path.as_ref().is_some_and(|it| it.ends_with("/fenced/base"));
    let traffic = proxy.traffic();
    COUNTED.map(|operation| traffic.matching(|it| it.operation == operation && !is_base(&it.path)))
}

#[tokio::test]
async fn a_short_section_costs_a_create_a_list_and_a_delete() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let locks = ground.locks_at(&proxy.address()).await;
    let path = path("short");
    // Makes the parents.
    acquire(&locks, &path).await.release().await.unwrap();
    for _ in 0..20 {
        proxy.forget_requests();
        let lease = acquire(&locks, &path).await;
        lease.release().await.unwrap();
        let [create, delete, _, own_watch, _, list, ..] = counts(&proxy);
        // On a busy machine the section may have lasted longer than 5 ms.
        assert!(own_watch <= 1);
        assert_eq!((create, list, delete), (1, 1, 1));
        assert_eq!(counts(&proxy).iter().sum::<usize>(), 3 + own_watch);
    }
}

#[tokio::test]
async fn a_longer_section_costs_one_watched_read_more() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let locks = ground.locks_at(&proxy.address()).await;
    let path = path("longer");
    acquire(&locks, &path).await.release().await.unwrap();
    proxy.forget_requests();
    let lease = acquire(&locks, &path).await;
    sleep(Duration::from_millis(100)).await;
    lease.release().await.unwrap();
    assert_eq!(counts(&proxy), [1, 1, 0, 1, 0, 1, 0, 0, 0]);
    let reads = proxy.traffic();
    let reads = reads.matching(|it| it.operation == Operation::GetData && it.watch);
    assert_eq!(reads, 1);
}

#[tokio::test]
async fn the_second_in_line_reads_its_predecessor_and_does_not_list_again() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let (holder, waiter) = (
        ground.locks().await,
        ground.locks_at(&proxy.address()).await,
    );
    let path = path("second");
    let held = acquire(&holder, &path).await;
    let waiting = async {
        let lease = acquire(&waiter, &path).await;
        sleep(Duration::from_millis(50)).await;
        lease.release().await.unwrap();
    };
    let freeing = async {
        proxy
            .wait_for(|traffic| traffic.count(Operation::GetData) == 2)
            .await;
        sleep(Duration::from_millis(100)).await;
        held.release().await.unwrap();
    };
    tokio::join!(waiting, freeing);
    // Of the reads one is of the predecessor and one of its own node.
    assert_eq!(counts(&proxy), [1, 1, 0, 2, 0, 1, 0, 0, 0]);
}

#[tokio::test]
async fn the_third_in_line_lists_once_more() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let path = path("third");
    let (first, second) = (ground.locks().await, ground.locks().await);
    let third = ground.locks_at(&proxy.address()).await;
    let held = acquire(&first, &path).await;
    let waiting = async {
        let lease = acquire(&second, &path).await;
        sleep(Duration::from_millis(50)).await;
        lease.release().await.unwrap();
    };
    let counted = async {
        ground.queue_of(&path, 2).await;
        acquire(&third, &path).await.release().await.unwrap();
    };
    let freeing = async {
        ground.queue_of(&path, 3).await;
        proxy
            .wait_for(|traffic| traffic.count(Operation::GetData) == 2)
            .await;
        sleep(Duration::from_millis(50)).await;
        held.release().await.unwrap();
    };
    tokio::join!(waiting, counted, freeing);
    assert_eq!(counts(&proxy), [1, 1, 0, 2, 0, 2, 0, 0, 0]);
}

#[tokio::test]
async fn local_waiters_stand_behind_one_node() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let locks = ground.locks_at(&proxy.address()).await;
    let path = path("local");
    let other = ground.locks().await;
    let held = acquire(&other, &path).await;
    proxy.forget_requests();
    let waiters: Vec<_> = (0..1_000)
        .map(|_| {
            let (locks, path) = (locks.clone(), path.clone());
            tokio::spawn(async move { acquire(&locks, &path).await.release().await })
        })
        .collect();
    proxy
        .wait_for(|traffic| traffic.count(Operation::GetData) == 2)
        .await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(ground.queue(&path).await.len(), 2);
    assert_eq!(counts(&proxy), [1, 0, 0, 2, 0, 1, 0, 0, 0]);
    held.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
    assert_eq!(ground.queue(&path).await, [""; 0]);
    assert_eq!(proxy.count(Operation::Create), 1_000);
    assert_eq!(proxy.count(Operation::GetChildren), 1_000);
}

#[tokio::test]
async fn heartbeats_come_every_third_of_the_timeout_and_only_while_held() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let timeout = Duration::from_millis(1_500);
    let builder = ground.builder().session_timeout(timeout);
    let locks = builder.connect(&proxy.address()).await.unwrap();
    let path = path("beat");
    let leases = [
        acquire(&locks, &path).await,
        acquire(&locks, &crate::setup::path("beat-2")).await,
    ];
    sleep(timeout * 2).await;
    assert!(leases.iter().all(|lease| lease.loss().is_none()));
    let beats: Vec<_> = proxy
        .traffic()
        .requests
        .iter()
        .filter(|request| request.operation == Operation::Multi)
        .map(|request| request.at)
        .collect();
    assert!((4..=5).contains(&beats.len()), "{} heartbeats", beats.len());
    for pair in beats.windows(2) {
        let apart = pair[1] - pair[0];
        assert!(apart >= timeout / 4, "{apart:?}");
    }
    for lease in leases {
        lease.release().await.unwrap();
    }
    proxy.forget_requests();
    sleep(timeout).await;
    assert_eq!(counts(&proxy), [0; 9]);
}

#[tokio::test]
async fn who_asks_once_leaves_no_watch() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let (holder, asking) = (
        ground.locks().await,
        ground.locks_at(&proxy.address()).await,
    );
    let path = path("once");
    let _held = acquire(&holder, &path).await;
    let asked = asking
        .acquire(LockRequest::new(&path, Duration::ZERO))
        .await;
    let error = asked.expect_err("the lock is held");
    assert!(error.to_string().contains("1 ahead"), "{error}");
    ground.queue_of(&path, 1).await;
    assert_eq!(proxy.count(Operation::Create), 1);
    assert_eq!(proxy.count(Operation::Delete), 1);
}

/// The create and the list are under way together: with `TCP_NODELAY` always, without it as
/// the client's buffers will have it.
#[tokio::test]
async fn a_grant_takes_one_round_trip() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let there_and_back = Duration::from_millis(10);
    for way in [Way::ToServer, Way::ToClient] {
        proxy.delay(way, there_and_back / 2);
    }
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for session in 0..8 {
        for (nodelay, gaps) in [(true, &mut with), (false, &mut without)] {
            let builder = ground.builder().nodelay(nodelay);
            let locks = builder.connect(&proxy.address()).await.unwrap();
            let path = path(&format!("trip-{session}"));
            acquire(&locks, &path).await.release().await.unwrap();
            gaps.push(smallest_gap(&proxy, &locks, &path).await);
            locks.close().await.unwrap();
        }
    }
    println!("with TCP_NODELAY {with:.1?} apart, without {without:.1?}");
    // One that waited for the other's acknowledgement would come a round trip later.
    assert!(with.iter().all(|gap| *gap < there_and_back / 2));
    // What cannot be had is not needed.
    assert_eq!(without.len(), with.len());
}

/// How long after the create the list is sent, at best: a busy machine only adds to it.
async fn smallest_gap(proxy: &Proxy, locks: &ZkLocks, path: &LockPath) -> Duration {
    let mut smallest = Duration::MAX;
    for _ in 0..8 {
        proxy.forget_requests();
        acquire(locks, path).await.release().await.unwrap();
        let traffic = proxy.traffic();
        let sent = |wanted| traffic.requests.iter().find(|it| it.operation == wanted);
        let (create, list) = (sent(Operation::Create), sent(Operation::GetChildren));
        let (create, list) = (create.unwrap().at, list.unwrap().at);
        smallest = smallest.min(list.saturating_duration_since(create));
    }
    smallest
}

#[tokio::test]
async fn ten_thousand_local_waiters_cost_one_node_and_two_watches() {
    let server = tokio::task::spawn_blocking(ZooKeeper::start).await;
    let server = server.unwrap().unwrap();
    let ground = Ground::on(server.address()).await;
    let (holder, locks) = (ground.locks().await, ground.locks().await);
    let path = path("crowd");
    let held = acquire(&holder, &path).await;
    let request = || LockRequest::new(&path, PATIENCE);
    let mut waiters: Vec<_> = (0..10_000).map(|_| locks.acquire(request())).collect();
    for waiter in &mut waiters {
        assert!(futures::poll!(waiter).is_pending());
    }
    // The holder's own watch is one more.
    eventually("three watches", async || {
        (watches(&server, &path) == 3).then_some(())
    })
    .await;
    assert_eq!(ground.queue(&path).await.len(), 2);
    held.release().await.unwrap();
    let mut waiters = waiters.into_iter();
    let next = soon("a grant", waiters.next().unwrap()).await.unwrap();
    drop(waiters);
    next.release().await.unwrap();
    ground.queue_of(&path, 0).await;
    eventually("no watch", async || {
        (watches(&server, &path) == 0).then_some(())
    })
    .await;
}
