//! What a lock costs, counted at the server.

use std::time::{Duration, Instant};

use fenced::{LockRequest, LockService};
use fenced_tests::{Operation, Proxy, Way, shared};
use tokio::time::sleep;

use crate::setup::{Ground, acquire, path};

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

/// Everything but pings, in the order of [`COUNTED`].
fn counts(proxy: &Proxy) -> [usize; 9] {
    COUNTED.map(|operation| proxy.count(operation))
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

/// The create and the list are under way together.
#[tokio::test]
async fn a_grant_takes_one_round_trip() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let there_and_back = Duration::from_millis(60);
    for session in 0..8 {
        let locks = ground.locks_at(&proxy.address()).await;
        let path = path(&format!("trip-{session}"));
        acquire(&locks, &path).await.release().await.unwrap();
        for way in [Way::ToServer, Way::ToClient] {
            proxy.delay(way, there_and_back / 2);
        }
        // The fastest of several, since a busy machine only adds to it.
        let mut fastest = Duration::MAX;
        for _ in 0..5 {
            let started = Instant::now();
            let lease = acquire(&locks, &path).await;
            fastest = fastest.min(started.elapsed());
            lease.release().await.unwrap();
        }
        assert!(fastest >= there_and_back, "{fastest:?}");
        assert!(fastest < there_and_back * 3 / 2, "{fastest:?}");
        for way in [Way::ToServer, Way::ToClient] {
            proxy.delay(way, Duration::ZERO);
        }
    }
}
