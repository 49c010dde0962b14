//! What a process that holds or awaits very many locks pays for each. A program of its own, since
//! its allocator counts.

use std::time::Duration;

use fenced::zookeeper::ZkLocks;
use fenced::{LockPath, LockRequest, LockService};
use fenced_tests::shared;
use futures::future::join_all;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const PATHS: usize = 10_000;
const HELD_BYTES: usize = 4 * 1_024;
/// The client library keeps two watches for each, and the process somebody who waits.
const AWAITED_BYTES: usize = 6 * 1_024;
const PATIENCE: Duration = Duration::from_mins(10);

/// Prints what was used since, for each of the locks, and checks it.
fn check(what: &str, limit: usize, before: usize) {
    let each = ALLOCATOR.current_usage().saturating_sub(before) / PATHS;
    println!("{what} costs {each} bytes");
    assert!(each < limit, "{what} costs {each} bytes");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "soak: ten thousand locks"]
async fn ten_thousand_locks_cost_a_few_kilobytes_each() {
    let root = shared::fresh_root();
    let builder = ZkLocks::builder()
        .root(&root)
        .session_timeout(Duration::from_mins(1));
    let server = shared::zookeeper_address();
    let holder = builder.clone().connect(&server).await.unwrap();
    let waiter = builder.connect(&server).await.unwrap();
    let paths: Vec<_> = (0..PATHS)
        .map(|index| LockPath::new(format!("/locks/{index}")).unwrap())
        .collect();

    let before = ALLOCATOR.current_usage();
    let mut held = Vec::with_capacity(PATHS);
    for some in paths.chunks(100) {
        let acquiring = some
            .iter()
            .map(|path| holder.acquire(LockRequest::new(path, PATIENCE)));
        let granted = join_all(acquiring).await;
        held.extend(granted.into_iter().map(Result::unwrap));
    }
    // Until each has a watch on its own node.
    tokio::time::sleep(Duration::from_secs(1)).await;
    check("a lock that is held", HELD_BYTES, before);

    let before = ALLOCATOR.current_usage();
    let mut waiting = Vec::with_capacity(PATHS);
    for some in paths.chunks(100) {
        for path in some {
            let mut acquiring = waiter.acquire(LockRequest::new(path, PATIENCE));
            assert!(futures::poll!(&mut acquiring).is_pending());
            waiting.push(acquiring);
        }
        until_all_stand(&waiter, some).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    check("a lock that is awaited", AWAITED_BYTES, before);

    drop(waiting);
    for released in join_all(held.into_iter().map(fenced::Lease::release)).await {
        released.unwrap();
    }
    holder.close().await.unwrap();
    waiter.close().await.unwrap();
}

/// Waits until each queue has its second contender.
async fn until_all_stand(locks: &ZkLocks, paths: &[LockPath]) {
    for path in paths {
        while locks.inspect(path).await.unwrap().contenders.len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
