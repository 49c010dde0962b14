//! Who goes first, and what those learn who give up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fenced::{
    Fence, FencingSink, FencingToken, LockError, LockRequest, LockService, LossReason, MemorySink,
    Mode, section,
};
use tokio::task::JoinSet;

use crate::setup::{Ground, PATIENCE, acquire, path, soon};

#[tokio::test]
async fn local_and_remote_waiters_are_served_in_order() {
    let ground = Ground::shared().await;
    let (here, there) = (ground.locks().await, ground.locks().await);
    let path = path("order");
    let held = acquire(&here, &path).await;
    let served = Arc::new(AtomicUsize::new(0));
    let mut waiters = JoinSet::new();
    for place in 0..6 {
        // Those of one process stand in front of one node.
        let locks = [&here, &there][usize::from(place >= 3)].clone();
        let (mine, served) = (path.clone(), Arc::clone(&served));
        let waiting = Arc::new(tokio::sync::Notify::new());
        let told = Arc::clone(&waiting);
        waiters.spawn(async move {
            let mut waiter = Box::pin(locks.acquire(LockRequest::new(&mine, PATIENCE)));
            assert!(futures::poll!(waiter.as_mut()).is_pending());
            told.notify_one();
            let lease = waiter.await.unwrap();
            let turn = served.fetch_add(1, Ordering::SeqCst);
            lease.release().await.unwrap();
            (place, turn)
        });
        waiting.notified().await;
    }
    ground.queue_of(&path, 2).await;
    held.release().await.unwrap();
    let mut turns: Vec<(usize, usize)> = Vec::new();
    while let Some(turn) = waiters.join_next().await {
        turns.push(turn.unwrap());
    }
    // Each process serves its own in order; the two take turns.
    for process in [0..3, 3..6] {
        turns.sort_unstable();
        let of_process: Vec<_> = turns.iter().filter(|it| process.contains(&it.0)).collect();
        assert!(of_process.is_sorted_by_key(|it| it.1), "{turns:?}");
    }
    ground.queue_of(&path, 0).await;
}

#[tokio::test]
async fn who_gives_up_knows_the_queue_and_keeps_the_place_for_the_next() {
    let ground = Ground::shared().await;
    let holder = ground.builder().owner("billing/3");
    let holder = holder.connect(&ground.server).await.unwrap();
    let (waiter, path) = (ground.locks().await, path("give-up"));
    let request = LockRequest::new(&path, PATIENCE).label("order 17");
    let held = holder.acquire(request).await.unwrap();
    let (hasty, patient) = (waiter.clone(), waiter);
    let hasty = hasty.acquire(LockRequest::new(&path, Duration::from_millis(300)));
    let patient = async {
        let lease = acquire(&patient, &path).await;
        lease.release().await.unwrap();
    };
    let giving_up = async {
        let started = Instant::now();
        let error = hasty.await.expect_err("the lock is held");
        assert!(started.elapsed() >= Duration::from_millis(300));
        let LockError::Timeout { queue, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(queue.ahead, Some(1));
        assert_eq!(queue.holder.as_deref(), Some("billing/3 order 17"));
        let queue = ground.queue_of(&path, 2).await;
        held.release().await.unwrap();
        queue
    };
    let (queue, ()) = tokio::join!(giving_up, patient);
    assert!(queue[1].ends_with("-lock-0000000001"), "{queue:?}");
    ground.queue_of(&path, 0).await;
}

#[tokio::test]
async fn readers_share_and_writers_do_not() {
    let ground = Ground::shared().await;
    let (one, two, three) = (
        ground.locks().await,
        ground.locks().await,
        ground.locks().await,
    );
    let path = path("shared");
    let shared = || LockRequest::new(&path, PATIENCE).mode(Mode::Shared);
    let readers = [
        one.acquire(shared()).await.unwrap(),
        one.acquire(shared()).await.unwrap(),
        two.acquire(shared()).await.unwrap(),
    ];
    let writing = acquire(&three, &path);
    let freeing = async {
        ground.queue_of(&path, 4).await;
        for reader in readers {
            assert_eq!(reader.loss(), None);
            reader.release().await.unwrap();
        }
    };
    let (writer, ()) = tokio::join!(writing, freeing);
    let reading = one.acquire(shared());
    let done = async {
        ground.queue_of(&path, 2).await;
        writer.release().await.unwrap();
    };
    let (reader, ()) = tokio::join!(reading, done);
    reader.unwrap().release().await.unwrap();
    ground.queue_of(&path, 0).await;
}

#[tokio::test]
async fn a_deleted_waiter_stands_in_line_again() {
    let ground = Ground::shared().await;
    let (holder, waiter) = (ground.locks().await, ground.locks().await);
    let path = path("deleted-waiter");
    let held = acquire(&holder, &path).await;
    let waiting = acquire(&waiter, &path);
    let meddling = async {
        let queue = ground.queue_of(&path, 2).await;
        ground.delete(&path, &queue[1]).await;
        let again = ground.queue_of(&path, 2).await;
        assert_ne!(queue[1], again[1]);
        held.release().await.unwrap();
    };
    let (lease, ()) = tokio::join!(waiting, meddling);
    assert_eq!(lease.loss(), None);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_deleted_holder_is_told_and_the_next_gets_a_higher_token() {
    let ground = Ground::shared().await;
    let (holder, waiter) = (ground.locks().await, ground.locks().await);
    let path = path("deleted-holder");
    let held = acquire(&holder, &path).await;
    let waiting = acquire(&waiter, &path);
    let meddling = async {
        let queue = ground.queue_of(&path, 2).await;
        ground.delete(&path, &queue[0]).await;
        soon("the loss", held.lost()).await
    };
    let (next, loss) = tokio::join!(waiting, meddling);
    assert_eq!(loss.reason, LossReason::NodeDeleted);
    assert!(next.token() > held.token());
}

#[tokio::test]
async fn a_wiped_tree_is_built_again_under_waiters() {
    let ground = Ground::shared().await;
    let (holder, waiter) = (ground.locks().await, ground.locks().await);
    let path = path("wiped");
    let held = acquire(&holder, &path).await;
    let waiting = acquire(&waiter, &path);
    let wiping = async {
        for name in ground.queue_of(&path, 2).await.iter().rev() {
            ground.delete(&path, name).await;
        }
        // Unless the waiter is faster, it finds no directory.
        let _ = ground.admin.delete(&ground.directory(&path), None).await;
        soon("the loss", held.lost()).await
    };
    let (lease, loss) = tokio::join!(waiting, wiping);
    assert_eq!(loss.reason, LossReason::NodeDeleted);
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_processes_worth_of_contenders_never_meet() {
    let ground = Ground::shared().await;
    let path = path("contention");
    let inside = Arc::new(AtomicUsize::new(0));
    let tokens = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut workers = JoinSet::new();
    for _ in 0..8 {
        let locks = ground.locks().await;
        let (path, inside, tokens) = (path.clone(), Arc::clone(&inside), Arc::clone(&tokens));
        workers.spawn(async move {
            for _ in 0..25 {
                let lease = acquire(&locks, &path).await;
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                tokens.lock().unwrap().push(lease.token());
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                lease.release().await.unwrap();
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
    let tokens = std::mem::take(&mut *tokens.lock().unwrap());
    assert_eq!(tokens.len(), 200);
    assert!(tokens.is_sorted_by(|a, b| a < b));
    assert_eq!(ground.queue(&path).await, [""; 0]);
}

/// What ends a section from within: its own limit, and a resource that has seen a newer token.
#[tokio::test]
async fn limits_and_resources_end_a_section_and_free_the_lock() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("ends"));
    let limited = section(&locks, &path)
        .hold(Duration::from_millis(50))
        .run(async |_| std::future::pending::<()>().await);
    let reason = |ended: Result<(), LockError>| match ended {
        Err(LockError::Lost(loss)) => loss.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(limited.await), LossReason::HoldExceeded);
    let sink = MemorySink::new();
    let stale = section(&locks, &path).run(async |guard| {
        let newer = FencingToken::try_from(guard.token().get() + 1).unwrap();
        let fence = Fence::new(path.as_str(), newer);
        sink.claim(&fence).await.unwrap();
        let _ = guard.fence(&sink).claim().await;
        std::future::pending::<()>().await;
    });
    assert_eq!(reason(stale.await), LossReason::RefusedBySink);
    ground.queue_of(&path, 0).await;
    // The delete was a transaction of its own, so that this token is newer than that one.
    acquire(&locks, &path).await.release().await.unwrap();
}
