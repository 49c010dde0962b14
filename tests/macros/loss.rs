//! What a loss does to a body.
#![deny(warnings, clippy::all, clippy::pedantic)]

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fenced::prelude::*;
use fenced::{Hold, LossReason};
use tokio::sync::Notify;

use crate::inventory::{Inventory, OrderError, Reply};

type Log = Arc<Mutex<Vec<&'static str>>>;

/// Writes a line when it goes.
struct Leaves(Log, &'static str);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(self.1);
    }
}

impl Inventory {
    #[fenced(lock = "/loss")]
    async fn waits(
        &self,
        guard: FencedGuard<'_>,
        log: &Log,
        argument: Leaves,
        started: &Notify,
    ) -> Reply<()> {
        let _local = Leaves(Arc::clone(log), "local dropped");
        started.notify_one();
        pending::<()>().await;
        drop((guard, argument));
        Ok(())
    }

    #[fenced(lock = "/loss", on_lost = "finish")]
    async fn finishes(&self, guard: FencedGuard<'_>) -> Reply<&'static str> {
        self.locks.lose("/loss", LossReason::NodeDeleted);
        tokio::task::yield_now().await;
        let refused = self.add(&guard, 1).await;
        assert!(
            matches!(&refused, Err(SinkError::Lost(loss)) if loss.reason == LossReason::NodeDeleted),
            "{refused:?}"
        );
        Ok("finished")
    }

    #[fenced(lock = "/loss", on_lost = "finish")]
    async fn holds(&self, guard: FencedGuard<'_>, breaks: bool) -> Reply<i64> {
        let work = async {
            if breaks {
                self.locks.lose("/loss", LossReason::SessionExpired);
            }
            tokio::task::yield_now().await;
        };
        match guard.hold(work).await {
            Hold::Held(guard, ()) => Ok(self.add(&guard, 1).await?),
            Hold::Lost(loss) => Err(LockError::from(loss).into()),
        }
    }

    #[fenced(lock = "/loss", on_lost = "finish")]
    async fn learns(&self, guard: FencedGuard<'_>) -> Reply<LossReason> {
        let lose = async { self.locks.lose("/loss", LossReason::Closed) };
        Ok(tokio::join!(guard.revoked(), lose).0.reason)
    }

    #[fenced(lock = "/loss", hold = "30ms")]
    async fn takes_too_long(&self, guard: FencedGuard<'_>) -> Reply<()> {
        assert!(guard.remaining() <= Duration::from_millis(30));
        pending().await
    }

    #[fenced(lock = "/loss", hold = Duration::from_secs(15) * 2)]
    async fn is_quick(&self, guard: FencedGuard<'_>) -> Reply<Duration> {
        Ok(guard.remaining())
    }
}

fn reason<T>(reply: Reply<T>) -> LossReason {
    match reply {
        Err(OrderError::Lock(LockError::Lost(loss))) => loss.reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("not lost"),
    }
}

#[tokio::test]
async fn the_body_and_its_arguments_go_before_the_function_returns() {
    let (inventory, log, started) = (Inventory::default(), Log::default(), Notify::new());
    let argument = Leaves(Arc::clone(&log), "argument dropped");
    let lose = async {
        started.notified().await;
        log.lock().unwrap().push("lost");
        inventory.locks.lose("/loss", LossReason::SessionExpired);
    };
    let (reply, ()) = tokio::join!(inventory.waits(&log, argument, &started), lose);
    log.lock().unwrap().push("returned");
    assert_eq!(reason(reply), LossReason::SessionExpired);
    assert_eq!(
        *log.lock().unwrap(),
        ["lost", "local dropped", "argument dropped", "returned"]
    );
    assert_eq!(inventory.locks.token("/loss"), None);
}

#[tokio::test]
async fn a_body_that_finishes_is_refused_by_every_sink() {
    let inventory = Inventory::default();
    assert_eq!(inventory.finishes().await.unwrap(), "finished");
    assert_eq!(inventory.stock.get("stock"), 0);
}

#[tokio::test]
async fn hold_returns_the_guard_or_the_loss() {
    let inventory = Inventory::default();
    assert_eq!(inventory.holds(false).await.unwrap(), 1);
    assert_eq!(
        reason(inventory.holds(true).await),
        LossReason::SessionExpired
    );
    assert_eq!(inventory.learns().await.unwrap(), LossReason::Closed);
}

#[tokio::test]
async fn hold_bounds_the_body() {
    let inventory = Inventory::default();
    let lost = reason(inventory.takes_too_long().await);
    assert_eq!(lost, LossReason::HoldExceeded);
    let left = inventory.is_quick().await.unwrap();
    assert!(left <= Duration::from_secs(30) && left > Duration::from_secs(20));
}

#[tokio::test]
async fn dropping_the_call_frees_the_lock() {
    let (inventory, log, started) = (Inventory::default(), Log::default(), Notify::new());
    let argument = Leaves(Arc::clone(&log), "argument dropped");
    tokio::select! {
        biased;
        _ = inventory.waits(&log, argument, &started) => unreachable!("it waits for ever"),
        () = started.notified() => {}
    }
    assert_eq!(*log.lock().unwrap(), ["local dropped", "argument dropped"]);
    assert_eq!(inventory.locks.token("/loss"), None);
    assert_eq!(inventory.holds(false).await.unwrap(), 1);
}
