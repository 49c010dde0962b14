//! `timeout` and `release`, as written in the attribute.
#![deny(warnings, clippy::all, clippy::pedantic)]

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use fenced::prelude::*;
use fenced::{Lease, LockRequest, section};

use crate::inventory::{Inventory, OrderError, Reply};

/// A lock service that writes down how long it may take, and then refuses.
#[derive(Default)]
struct Asked(Mutex<Vec<Duration>>);

#[async_trait]
impl LockService for Asked {
    async fn acquire(&self, request: LockRequest<'_>) -> Result<Lease, LockError> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(if request.budget.tries_once() {
            Duration::ZERO
        } else {
            request.budget.remaining()
        });
        Err(LockError::closed(request.path))
    }
}

impl HasLocks for Asked {
    fn locks(&self) -> &dyn LockService {
        self
    }
}

impl Asked {
    #[fenced(lock = "/a", timeout = "0s")]
    async fn once(&self, _guard: FencedGuard<'_>) -> Result<(), LockError> {
        Ok(())
    }

    #[fenced(lock = "/a", timeout = "30000ms")]
    async fn milliseconds(&self, _guard: FencedGuard<'_>) -> Result<(), LockError> {
        Ok(())
    }

    #[fenced(lock = "/a", timeout = "90s")]
    async fn seconds(&self, _guard: FencedGuard<'_>) -> Result<(), LockError> {
        Ok(())
    }

    #[fenced(lock = "/a", timeout = "3m")]
    async fn minutes(&self, _guard: FencedGuard<'_>) -> Result<(), LockError> {
        Ok(())
    }

    #[fenced(lock = "/a", timeout = patience * 2)]
    async fn as_told(&self, _guard: FencedGuard<'_>, patience: Duration) -> Result<(), LockError> {
        Ok(())
    }

    #[fenced(lock = "/a")]
    async fn by_default(&self, _guard: FencedGuard<'_>) -> Result<(), LockError> {
        Ok(())
    }
}

#[tokio::test]
async fn the_service_is_told_how_long_it_may_take() {
    let asked = Asked::default();
    let refused = [
        asked.once().await,
        asked.milliseconds().await,
        asked.seconds().await,
        asked.minutes().await,
        asked.as_told(Duration::from_mins(5)).await,
        asked.by_default().await,
    ];
    assert!(refused.iter().all(Result::is_err));
    let asked = asked.0.into_inner().unwrap();
    for (asked, written) in asked.into_iter().zip([0, 30, 90, 180, 600, 10]) {
        let written = Duration::from_secs(written);
        // A machine may be busy for seconds between the call and the reading.
        let slack = Duration::from_secs(9);
        assert!(
            asked <= written && asked + slack > written,
            "{asked:?} of {written:?}"
        );
    }
}

impl Inventory {
    #[fenced(lock = "/busy", timeout = "20ms")]
    async fn briefly(&self, _guard: FencedGuard<'_>) -> Reply<()> {
        Ok(())
    }

    #[fenced(lock = "/busy", release = "detach")]
    async fn detaches(&self, guard: FencedGuard<'_>) -> Reply<i64> {
        Ok(guard.token().get())
    }
}

#[tokio::test]
async fn a_timeout_tells_what_was_waited_for() {
    let inventory = Inventory::default();
    let waiting = Inventory {
        locks: inventory.locks.clone(),
        ..Inventory::default()
    };
    let busy = section(&inventory.locks, "/busy")
        .label("the holder")
        .run(async |_guard| tokio::spawn(async move { waiting.briefly().await }).await);
    match busy.await.unwrap().unwrap() {
        Err(OrderError::Lock(LockError::Timeout {
            path,
            waited,
            queue,
            ..
        })) => {
            assert_eq!(path.as_str(), "/busy");
            assert!(waited >= Duration::from_millis(20), "{waited:?}");
            assert_eq!(queue.ahead, Some(1));
            assert_eq!(queue.holder.as_deref(), Some("the holder"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_detached_release_frees_the_lock_too() {
    let inventory = Inventory::default();
    assert_eq!(inventory.detaches().await.unwrap(), 1);
    assert_eq!(inventory.detaches().await.unwrap(), 2);
}
