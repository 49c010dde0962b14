//! What takes long: many waiters across a restart, and parents that vanish all the time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fenced::{LockPath, LockRequest, LockService};
use fenced_tests::{Operation, Proxy, Request, ZooKeeper};
use tokio::task::JoinSet;

use crate::setup::{Ground, PATIENCE, acquire, eventually, path};

const PATHS: usize = 100;
/// Of each path, and each on a session of its own.
const WAITERS: usize = 10;

fn is_read(request: &Request) -> bool {
    use Operation::{Exists, GetChildren, GetData};
    matches!(request.operation, Exists | GetChildren | GetData)
}

/// How many reads there were of each lock's nodes.
fn reads(proxy: &Proxy) -> HashMap<String, usize> {
    let mut reads = HashMap::new();
    for request in proxy.traffic().requests.iter().filter(|it| is_read(it)) {
        let node = request.path.clone().unwrap_or_default();
        if let Some((_, lock)) = node.split_once("/locks/") {
            let lock = lock.split('/').next().unwrap_or_default();
            *reads.entry(lock.to_owned()).or_default() += 1;
        }
    }
    reads
}

/// Waits until nothing is read any longer.
async fn quiet(proxy: &Proxy) {
    let mut seen = usize::MAX;
    eventually("quiet", async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = proxy
            .traffic()
            .requests
            .iter()
            .filter(|it| is_read(it))
            .count();
        (std::mem::replace(&mut seen, now) == now).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "soak: a thousand waiters"]
async fn a_thousand_waiters_across_a_restart() {
    let server = tokio::task::spawn_blocking(ZooKeeper::start).await;
    let mut server = server.unwrap().unwrap();
    let ground = Ground::on(server.address()).await;
    let proxy = Proxy::zookeeper(server.address()).unwrap();
    let builder = || ground.builder().session_timeout(Duration::from_mins(1));
    let holder = builder().connect(&ground.server).await.unwrap();
    let paths: Vec<LockPath> = (0..PATHS).map(|index| path(&index.to_string())).collect();
    let mut held = Vec::new();
    for path in &paths {
        held.push(acquire(&holder, path).await);
    }
    let granted = Arc::new(AtomicUsize::new(0));
    let mut waiters = JoinSet::new();
    for _ in 0..WAITERS {
        let locks = builder().connect(&proxy.address()).await.unwrap();
        for path in &paths {
            let (locks, path, granted) = (locks.clone(), path.clone(), Arc::clone(&granted));
            waiters.spawn(async move {
                let request = LockRequest::new(&path, PATIENCE * 20);
                let lease = locks.acquire(request).await.unwrap();
                granted.fetch_add(1, Ordering::SeqCst);
                lease.release().await.unwrap();
            });
        }
    }
    for path in &paths {
        ground.queue_of(path, 1 + WAITERS).await;
    }
    quiet(&proxy).await;

    proxy.forget_requests();
    tokio::task::block_in_place(|| server.restart()).unwrap();
    eventually("back", async || {
        held.iter().all(|lease| !lease.is_suspect()).then_some(())
    })
    .await;
    quiet(&proxy).await;
    let worst = reads(&proxy).into_values().max().unwrap_or_default();
    println!("{worst} reads of {WAITERS} waiters of one lock after a restart");
    assert!(worst <= 3 * WAITERS, "{worst}");
    assert_eq!(granted.load(Ordering::SeqCst), 0);

    proxy.forget_requests();
    for lease in held {
        assert_eq!(lease.loss(), None);
        lease.release().await.unwrap();
    }
    while let Some(waiter) = waiters.join_next().await {
        waiter.unwrap();
    }
    assert_eq!(granted.load(Ordering::SeqCst), PATHS * WAITERS);
    // Each grant, but for the first, is one waiter's: it lists once, and may look at its own node
    // or at a predecessor once more.
    let worst = reads(&proxy).into_values().max().unwrap_or_default();
    println!("{worst} reads for {WAITERS} releases of one lock");
    assert!(worst <= 3 * WAITERS, "{worst}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "soak: a minute"]
async fn parents_that_vanish_every_millisecond() {
    let options = ZooKeeper::options().property("znode.container.checkIntervalMs", "1");
    let server = tokio::task::spawn_blocking(|| options.start()).await;
    let server = server.unwrap().unwrap();
    let ground = Ground::on(server.address()).await;
    let until = Instant::now() + Duration::from_mins(1);
    let sections = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for worker in 0..4 {
        let (locks, sections) = (ground.locks().await, Arc::clone(&sections));
        workers.spawn(async move {
            let mut last = None;
            while Instant::now() < until {
                // Two share each path.
                let path = path(&format!("vanishing/{}", worker / 2));
                let lease = acquire(&locks, &path).await;
                assert!(last < Some(lease.token()));
                last = Some(lease.token());
                assert_eq!(lease.loss(), None);
                lease.release().await.unwrap();
                sections.fetch_add(1, Ordering::Relaxed);
                // Now and then long enough for the server to notice.
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
    println!("{} sections", sections.load(Ordering::Relaxed));
    for worker in 0..2 {
        ground
            .queue_of(&path(&format!("vanishing/{worker}")), 0)
            .await;
    }
}
