//! The rules that a lock service has to keep.
#![allow(missing_docs, reason = "each rule is named by its function")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::{LocksUnderTest, cancel_after};
use crate::{
    FencingToken, Lease, LockError, LockPath, LockRequest, LockService, LossReason, Released,
    section,
};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn path(name: &str) -> LockPath {
    LockPath::new(format!("/conformance/{name}")).expect("a valid path")
}

async fn acquire(locks: &dyn LockService, path: &LockPath) -> Lease {
    let granted = locks.acquire(LockRequest::new(path, PATIENCE)).await;
    granted.unwrap_or_else(|error| panic!("no grant: {error}"))
}

/// Waits until so many contenders stand in the service.
async fn contenders(subject: &impl LocksUnderTest, path: &LockPath, expected: usize) {
    let started = Instant::now();
    loop {
        let found = subject.contenders(path).await;
        if found == expected {
            return;
        }
        let waited = started.elapsed();
        assert!(
            waited < PATIENCE,
            "{found} contenders for {path}, not {expected}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub async fn a_grant_has_a_token_and_leaves_nothing(subject: &impl LocksUnderTest) {
    let (locks, path) = (subject.open().await, path("grant"));
    let lease = acquire(&locks, &path).await;
    assert!(lease.token().get() > 0);
    assert!(!lease.remaining().is_zero());
    assert_eq!((lease.path(), lease.loss()), (&path, None));
    contenders(subject, &path, 1).await;
    let released = lease.release().await.expect("a release");
    assert_eq!(released, Released::Confirmed);
    assert_eq!(subject.contenders(&path).await, 0, "a confirmed release");
}

pub async fn a_second_contender_waits(subject: &impl LocksUnderTest) {
    let (first, second, path) = (subject.open().await, subject.open().await, path("wait"));
    let held = acquire(&first, &path).await;
    let older = held.token();
    let waiting = acquire(&second, &path);
    let freeing = async {
        contenders(subject, &path, 2).await;
        held.release().await.expect("a release");
    };
    let (next, ()) = tokio::join!(waiting, freeing);
    assert!(next.token() > older);
}

pub async fn tokens_grow_with_every_grant(subject: &impl LocksUnderTest) {
    let (handles, path) = ([subject.open().await, subject.open().await], path("tokens"));
    let mut last: Option<FencingToken> = None;
    for locks in handles.iter().cycle().take(20) {
        let lease = acquire(locks, &path).await;
        assert!(Some(lease.token()) > last, "{lease:?} after {last:?}");
        last = Some(lease.token());
        lease.release().await.expect("a release");
    }
}

pub async fn first_come_first_served(subject: &impl LocksUnderTest) {
    const WAITERS: usize = 5;
    let path = path("order");
    let holder = subject.open().await;
    let held = acquire(&holder, &path).await;
    let served = Arc::new(AtomicUsize::new(0));
    let mut waiters = JoinSet::new();
    for place in 0..WAITERS {
        let locks = subject.open().await;
        let (mine, served) = (path.clone(), Arc::clone(&served));
        waiters.spawn(async move {
            let lease = acquire(&locks, &mine).await;
            assert_eq!(served.fetch_add(1, Ordering::SeqCst), place);
            lease.release().await.expect("a release");
        });
        contenders(subject, &path, place + 2).await;
    }
    held.release().await.expect("a release");
    while let Some(waiter) = waiters.join_next().await {
        waiter.expect("waiters are served in order");
    }
    contenders(subject, &path, 0).await;
}

pub async fn a_timeout_is_exact_and_leaves_nothing(subject: &impl LocksUnderTest) {
    let (first, second, path) = (subject.open().await, subject.open().await, path("timeout"));
    let held = acquire(&first, &path).await;
    let timeout = Duration::from_millis(300);
    let started = Instant::now();
    let refused = second.acquire(LockRequest::new(&path, timeout)).await;
    let waited = started.elapsed();
    let error = refused.expect_err("the lock is held");
    assert!(matches!(error, LockError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains(path.as_str()), "{error}");
    assert!(waited >= timeout, "gave up after {waited:?}");
    assert!(waited < timeout + Duration::from_secs(2), "took {waited:?}");
    contenders(subject, &path, 1).await;
    held.release().await.expect("a release");
}

pub async fn a_zero_timeout_asks_once(subject: &impl LocksUnderTest) {
    let (first, second, path) = (subject.open().await, subject.open().await, path("once"));
    let once = LockRequest::new(&path, Duration::ZERO);
    let held = first.acquire(once.clone()).await.expect("the lock is free");
    let error = second
        .acquire(once.clone())
        .await
        .expect_err("the lock is held");
    assert!(matches!(error, LockError::Timeout { .. }), "{error}");
    held.release().await.expect("a release");
    let again = second
        .acquire(LockRequest::new(&path, Duration::ZERO))
        .await;
    drop(again.expect("the lock is free again"));
}

pub async fn a_cancelled_acquire_leaves_nothing(subject: &impl LocksUnderTest) {
    let (first, second, path) = (subject.open().await, subject.open().await, path("cancel"));
    for contended in [false, true] {
        let held = if contended {
            Some(acquire(&first, &path).await)
        } else {
            None
        };
        let left = held.iter().count();
        for polls in 0.. {
            let timeout = if contended {
                Duration::from_millis(50)
            } else {
                PATIENCE
            };
            let acquiring = second.acquire(LockRequest::new(&path, timeout));
            let finished = cancel_after(polls, acquiring).await.is_ok();
            contenders(subject, &path, left).await;
            if finished {
                println!("contended: {contended}, await points: {polls}");
                break;
            }
        }
        if let Some(held) = held {
            held.release().await.expect("a release");
        }
    }
}

pub async fn a_dropped_lease_is_freed(subject: &impl LocksUnderTest) {
    let (locks, path) = (subject.open().await, path("drop"));
    drop(acquire(&locks, &path).await);
    contenders(subject, &path, 0).await;
    drop(acquire(&locks, &path).await);
    contenders(subject, &path, 0).await;
}

pub async fn a_cancelled_release_is_finished(subject: &impl LocksUnderTest) {
    let (locks, path) = (subject.open().await, path("cancel-release"));
    for polls in 0.. {
        let lease = acquire(&locks, &path).await;
        let finished = cancel_after(polls, lease.release()).await.is_ok();
        contenders(subject, &path, 0).await;
        if finished {
            break;
        }
    }
}

pub async fn a_panic_frees_the_lock(subject: &impl LocksUnderTest) {
    let (locks, path) = (subject.open().await, path("panic"));
    let inside = path.clone();
    let panicked = tokio::spawn(async move {
        let body = async |_: crate::FencedGuard<'_>| panic!("a body that panics, as it should");
        section(&locks, &inside).run(body).await
    });
    assert!(panicked.await.is_err(), "the panic reaches the caller");
    contenders(subject, &path, 0).await;
}

pub async fn a_lock_taken_away_is_lost(subject: &impl LocksUnderTest) {
    let (locks, path) = (subject.open().await, path("taken"));
    let lease = acquire(&locks, &path).await;
    subject.take_away(&path).await;
    let told = tokio::time::timeout(PATIENCE, lease.lost()).await;
    let loss = told.expect("the loss is told");
    assert_eq!(loss.reason, LossReason::NodeDeleted);
    assert_eq!((&loss.path, loss.token), (&path, lease.token()));
    let error = lease
        .release()
        .await
        .expect_err("nothing is left to release");
    assert!(matches!(error, LockError::Lost(_)), "{error}");
    let next = acquire(&locks, &path).await;
    assert!(next.token() > loss.token);
}

pub async fn paths_are_apart(subject: &impl LocksUnderTest) {
    let locks = subject.open().await;
    let outer = acquire(&locks, &path("apart")).await;
    let inner = acquire(&locks, &path("apart/inner")).await;
    let beside = acquire(&locks, &path("apart2")).await;
    for lease in [outer, inner, beside] {
        lease.release().await.expect("a release");
    }
}

pub async fn odd_paths_are_distinct(subject: &impl LocksUnderTest) {
    let locks = subject.open().await;
    let long = "x".repeat(LockPath::MAX_BYTES - "/conformance/".len());
    let names = [
        "%2F",
        "%2f",
        "a b",
        "A B",
        "ä",
        "a\u{308}",
        "'; DROP TABLE locks; --",
        "\"quoted\"",
        "back\\slash",
        "*",
        "?",
        "[a]",
        "$1",
        "ﷺ",
        "lock-1",
        "fenced",
        &long,
    ];
    let mut held = Vec::new();
    for name in names {
        let path = path(name);
        let request = LockRequest::new(&path, PATIENCE).label("'label\"\\");
        let granted = locks.acquire(request).await;
        held.push(granted.unwrap_or_else(|error| panic!("{name}: {error}")));
    }
    for lease in held {
        let path = lease.path().clone();
        assert_eq!(subject.contenders(&path).await, 1, "{path}");
        lease.release().await.expect("a release");
    }
}

pub async fn nobody_meets_inside(subject: &impl LocksUnderTest) {
    let path = path("inside");
    let inside = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let locks = subject.open().await;
        let (mine, inside) = (path.clone(), Arc::clone(&inside));
        workers.spawn(async move {
            let mut tokens = Vec::new();
            for _ in 0..10 {
                let lease = acquire(&locks, &mine).await;
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
                tokio::task::yield_now().await;
                tokens.push(lease.token());
                inside.fetch_sub(1, Ordering::SeqCst);
                lease.release().await.expect("a release");
            }
            tokens
        });
    }
    let mut all = Vec::new();
    while let Some(tokens) = workers.join_next().await {
        let tokens = tokens.expect("a worker");
        assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
        all.extend(tokens);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 40, "every grant has a token of its own");
    contenders(subject, &path, 0).await;
}
