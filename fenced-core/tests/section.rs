//! What a section promises its body, with the in-memory lock service.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fenced_core::{
    Fate, Fence, FencingSink, FencingToken, Hold, Lease, LeaseHandle, LockError, LockPath,
    LossReason, MemoryLocks, MemorySink, MemoryWrite, OnLost, Outcome, Released, Request,
    SinkError, section,
};
use tokio::sync::oneshot;

const A: &str = "/locks/a";
const SECOND: Duration = Duration::from_secs(1);

fn reason<T>(result: Result<T, LockError>) -> LossReason {
    match result {
        Err(LockError::Lost(loss)) => loss.reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the lease was not lost"),
    }
}

/// Sets its flag when it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn the_body_is_dropped_when_the_lease_is_lost() {
    let locks = MemoryLocks::new();
    let dropped = Arc::new(AtomicBool::new(false));
    let lost = section(&locks, A)
        .run(async |_guard| {
            let _flag = Flag(Arc::clone(&dropped));
            locks.lose(A, LossReason::SessionExpired);
            pending::<()>().await;
        })
        .await;
    assert_eq!(reason(lost), LossReason::SessionExpired);
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn only_the_first_reason_counts() {
    let locks = MemoryLocks::new();
    let lost = section(&locks, A)
        .on_lost(OnLost::Finish)
        .run(async |guard| {
            assert!(locks.lose(A, LossReason::NodeDeleted));
            assert!(!locks.lose(A, LossReason::SessionExpired));
            guard.revoked().await.reason
        })
        .await;
    assert_eq!(lost.unwrap(), LossReason::NodeDeleted);
}

#[tokio::test]
async fn a_deadline_passes_although_the_runtime_is_blocked() {
    let locks = MemoryLocks::with_lease(Duration::from_millis(50));
    let next = locks.clone();
    let lost = section(&locks, A)
        .run(async |guard| {
            locks.disconnect();
            assert!(guard.is_suspect());
            std::thread::sleep(Duration::from_millis(200));
            assert!(guard.remaining().is_zero());
            assert_eq!(locks.token(A), None, "the lock was freed meanwhile");
            tokio::task::yield_now().await;
            panic!("the body was resumed");
        })
        .await;
    assert_eq!(reason(lost), LossReason::DeadlinePassed);
    next.reconnect();
    section(&next, A).run(async |_| ()).await.unwrap();
}

#[tokio::test]
async fn the_longest_hold_is_kept() {
    let locks = MemoryLocks::new();
    let started = Instant::now();
    let lost = section(&locks, A)
        .hold(Duration::from_millis(50))
        .run(async |_guard| pending::<()>().await)
        .await;
    assert_eq!(reason(lost), LossReason::HoldExceeded);
    assert!(started.elapsed() >= Duration::from_millis(50));
    assert_eq!(locks.token(A), None);
}

#[tokio::test]
async fn a_body_that_finishes_may_not_use_a_sink_after_the_loss() {
    let (locks, sink) = (MemoryLocks::new(), MemorySink::new());
    let value = section(&locks, A)
        .on_lost(OnLost::Finish)
        .run(async |guard| {
            let fenced = guard.fence(&sink);
            fenced.claim().await.unwrap();
            locks.lose(A, LossReason::SessionExpired);
            tokio::task::yield_now().await;
            let request = Request::new("r", &1);
            let write = fenced.write(&request, MemoryWrite::set("k", 1));
            let refused = write.await.unwrap_err();
            assert!(
                matches!(&refused, SinkError::Lost(loss) if loss.reason == LossReason::SessionExpired),
                "{refused}"
            );
            41
        })
        .await;
    assert_eq!(value.unwrap(), 41);
    assert_eq!(sink.get("k"), 0);
}

#[tokio::test]
async fn a_suspect_lease_sends_nothing_until_it_is_confirmed() {
    let (locks, sink) = (MemoryLocks::new(), MemorySink::new());
    section(&locks, A)
        .run(async |guard| {
            let fenced = guard.fence(&sink);
            locks.disconnect();
            let refused = fenced.claim().await.unwrap_err();
            assert!(matches!(refused, SinkError::Suspect { .. }), "{refused}");
            assert_eq!(sink.current(A), None, "nothing was sent");
            locks.reconnect();
            fenced.claim().await.unwrap();
            assert_eq!(sink.current(A), Some(guard.token()));
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn a_stale_answer_ends_the_lease() {
    let (locks, sink) = (MemoryLocks::new(), MemorySink::new());
    sink.claim(&Fence::new(A, FencingToken::MAX)).await.unwrap();
    let lost = section(&locks, A)
        .run(async |guard| {
            let stale = guard.fence(&sink).claim().await.unwrap_err();
            assert!(matches!(stale, SinkError::Stale { .. }), "{stale}");
            pending::<()>().await;
        })
        .await;
    assert_eq!(reason(lost), LossReason::RefusedBySink);
}

#[tokio::test]
async fn a_released_lock_is_free_before_the_body_ends() {
    let locks = MemoryLocks::new();
    section(&locks, A)
        .run(async |guard| {
            assert_eq!(guard.release().await.unwrap(), Released::Confirmed);
            section(&locks, A)
                .timeout(SECOND)
                .run(async |_| ())
                .await
                .unwrap();
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn hold_gives_the_guard_back_only_while_the_lease_is_held() {
    let locks = MemoryLocks::new();
    let reason = section(&locks, A)
        .on_lost(OnLost::Finish)
        .run(async |guard| {
            let Hold::Held(guard, value) = guard.hold(async { 7 }).await else {
                panic!("nothing was lost")
            };
            assert_eq!(value, 7);
            locks.lose(A, LossReason::NodeDeleted);
            match guard.hold(pending::<()>()).await {
                Hold::Held(..) => panic!("the lease was lost"),
                Hold::Lost(loss) => loss.reason,
            }
        })
        .await;
    assert_eq!(reason.unwrap(), LossReason::NodeDeleted);
}

#[tokio::test]
async fn a_request_to_give_back_wakes_the_holder() {
    let locks = MemoryLocks::new();
    section(&locks, A)
        .run(async |guard| {
            assert!(!guard.revoke_requested());
            let asking = async { assert!(locks.ask_to_release(A)) };
            tokio::join!(guard.disturbed(), asking);
            assert!(guard.revoke_requested());
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn an_inner_section_of_the_same_lock_fails_at_once_or_shares() {
    let locks = MemoryLocks::new();
    section(&locks, A)
        .run(async |outer| {
            let inner = section(&locks.clone(), A).run(async |_| ()).await;
            assert!(
                matches!(inner, Err(LockError::Reentrant { .. })),
                "{inner:?}"
            );
            let in_join = async { section(&locks, A).run(async |_| ()).await };
            let (inner, ()) = tokio::join!(in_join, async {});
            assert!(
                matches!(inner, Err(LockError::Reentrant { .. })),
                "{inner:?}"
            );
            let shared = section(&locks, A).reentrant();
            let token = shared.run(async |inner| inner.token()).await.unwrap();
            assert_eq!(token, outer.token());
            assert_eq!(
                locks.token(A),
                Some(token),
                "the inner section freed nothing"
            );
            let elsewhere = section(&locks, "/locks/b").run(async |_| ()).await;
            elsewhere.unwrap();
            let another = MemoryLocks::new();
            section(&another, A).run(async |_| ()).await.unwrap();
        })
        .await
        .unwrap();
    assert_eq!(locks.token(A), None);
}

#[tokio::test]
async fn a_spawned_task_is_another_contender() {
    let locks = MemoryLocks::new();
    section(&locks, A)
        .run(async |_outer| {
            let locks = locks.clone();
            let inner = tokio::spawn(async move {
                let short = Duration::from_millis(20);
                section(&locks, A).timeout(short).run(async |_| ()).await
            });
            let inner = inner.await.unwrap();
            assert!(matches!(inner, Err(LockError::Timeout { .. })), "{inner:?}");
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn a_reentrant_section_fails_once_the_lease_is_lost() {
    let locks = MemoryLocks::new();
    let inner = section(&locks, A)
        .on_lost(OnLost::Finish)
        .run(async |_outer| {
            locks.lose(A, LossReason::NodeDeleted);
            section(&locks, A).reentrant().run(async |_| ()).await
        })
        .await
        .unwrap();
    assert_eq!(reason(inner), LossReason::NodeDeleted);
}

#[tokio::test]
async fn a_bad_path_is_refused_before_anything_is_locked() {
    let locks = MemoryLocks::new();
    for bad in ["relative", "/a//b", "/a/..", "/a/\u{1}"] {
        let refused = section(&locks, bad)
            .run(async |_| panic!("the body ran"))
            .await;
        assert!(matches!(refused, Err(LockError::Path(_))), "{refused:?}");
    }
}

/// A sink whose write is answered when the test says so.
struct Slow(tokio::sync::Mutex<Option<oneshot::Receiver<()>>>);

#[async_trait]
impl FencingSink for Slow {
    type Write = ();
    type Answer = ();

    async fn claim(&self, _: &Fence) -> Result<(), SinkError> {
        Ok(())
    }

    async fn write(&self, fence: &Fence, _: &Request, (): ()) -> Result<Outcome<()>, SinkError> {
        if let Some(answered) = self.0.lock().await.take() {
            let _ = answered.await;
        }
        let mine = fence.token;
        let current = FencingToken::MAX;
        Err(SinkError::Stale { mine, current })
    }

    async fn outcome(&self, _: &Request) -> Result<Fate<()>, SinkError> {
        Ok(Fate::Unknown)
    }
}

#[tokio::test]
async fn a_write_in_flight_at_the_loss_gets_a_last_chance_to_be_answered() {
    let locks = MemoryLocks::new();
    let (answer, answered) = oneshot::channel();
    let sink = Slow(Some(answered).into());
    let refused = section(&locks, A)
        .on_lost(OnLost::Finish)
        .run(async |guard| {
            let request = Request::new("r", &1);
            let losing = async {
                locks.lose(A, LossReason::SessionExpired);
                tokio::task::yield_now().await;
                answer.send(()).unwrap();
            };
            tokio::join!(guard.fence(&sink).write(&request, ()), losing).0
        })
        .await
        .unwrap();
    assert!(
        matches!(refused, Err(SinkError::Stale { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_write_that_is_never_answered_is_ambiguous_soon_after_the_loss() {
    let locks = MemoryLocks::new();
    let (_never, answered) = oneshot::channel();
    let sink = Slow(Some(answered).into());
    let cut = section(&locks, A)
        .on_lost(OnLost::Finish)
        .run(async |guard| {
            let request = Request::new("r", &1);
            let losing = async { locks.lose(A, LossReason::SessionExpired) };
            tokio::join!(guard.fence(&sink).write(&request, ()), losing).0
        })
        .await
        .unwrap();
    assert!(matches!(cut, Err(SinkError::Ambiguous { .. })), "{cut:?}");
}

#[tokio::test]
async fn a_call_that_had_not_begun_at_the_loss_is_not_made() {
    let (locks, sink) = (MemoryLocks::new(), MemorySink::new());
    let refused = section(&locks, A)
        .on_lost(OnLost::Finish)
        .run(async |guard| {
            let request = Request::new("r", &1);
            let fenced = guard.fence(&sink);
            let calling = async { panic!("the call was made") };
            let bounded = fenced.bounded::<()>(|_| request.ambiguous(), calling);
            locks.lose(A, LossReason::SessionExpired);
            bounded.await
        })
        .await
        .unwrap();
    assert!(matches!(refused, Err(SinkError::Lost(_))), "{refused:?}");
}

#[tokio::test]
async fn a_shared_lease_is_freed_by_the_last_of_its_sections() {
    let locks = MemoryLocks::new();
    section(&locks, A)
        .run(async |outer| {
            let inner = section(&locks, A)
                .reentrant()
                .run(async |inner| inner.release().await.unwrap());
            assert_eq!(inner.await.unwrap(), Released::StillShared);
            assert_eq!(locks.token(A), Some(outer.token()));
            assert_eq!(outer.release().await.unwrap(), Released::Confirmed);
            assert_eq!(locks.token(A), None);
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn nothing_is_granted_while_disconnected() {
    let locks = MemoryLocks::with_lease(Duration::from_millis(50));
    let held = section(&locks, A).run(async |_| {
        locks.disconnect();
        pending::<()>().await;
    });
    let waiting = async {
        tokio::task::yield_now().await;
        let waiting = section(&locks, A).timeout(Duration::from_millis(200));
        waiting.run(async |_| ()).await
    };
    let (held, waited) = tokio::join!(held, waiting);
    assert_eq!(reason(held), LossReason::DeadlinePassed);
    assert!(
        matches!(waited, Err(LockError::Unavailable { .. })),
        "{waited:?}"
    );
    let waiting = section(&locks, A).run(async |_| ());
    let reconnecting = async { locks.reconnect() };
    tokio::join!(waiting, reconnecting).0.unwrap();
}

#[tokio::test]
async fn who_waits_at_a_disconnect_is_served_after_it() {
    let locks = MemoryLocks::with_lease(Duration::from_millis(50));
    let held = section(&locks, A).run(async |_guard| {
        while locks.waiters(A) == 0 {
            tokio::task::yield_now().await;
        }
        locks.disconnect();
        pending::<()>().await;
    });
    let waiting = section(&locks, A).run(async |_| ());
    let reconnecting = async {
        while locks.token(A).is_some() || locks.waiters(A) == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(locks.waiters(A), 1, "it was granted while disconnected");
        locks.reconnect();
    };
    let (held, waited, ()) = tokio::join!(held, waiting, reconnecting);
    assert_eq!(reason(held), LossReason::DeadlinePassed);
    waited.unwrap();
}

/// What frees a lock of a service that breaks its promise.
struct Panics(std::sync::mpsc::Sender<()>);

#[async_trait]
impl LeaseHandle for Panics {
    async fn release(self: Box<Self>) -> Result<Released, LockError> {
        Ok(Released::Confirmed)
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        self.0.send(()).unwrap();
        panic!("a handle that panics, as it should not");
    }
}

#[tokio::test]
async fn deadlines_are_kept_although_a_lock_service_panics() {
    let path = LockPath::new(A).unwrap();
    let token = FencingToken::MAX;
    let (dropped, was_dropped) = std::sync::mpsc::channel();
    let lease = Lease::grant(path, token, Instant::now(), Panics(dropped)).0;
    was_dropped.recv().unwrap();
    assert!(lease.loss().is_some());
    let locks = MemoryLocks::with_lease(Duration::from_millis(50));
    let lost = section(&locks, A)
        .run(async |_guard| {
            locks.disconnect();
            pending::<()>().await;
        })
        .await;
    assert_eq!(reason(lost), LossReason::DeadlinePassed);
}
