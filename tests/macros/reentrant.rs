//! Sections inside sections of one lock.
#![deny(warnings, clippy::all, clippy::pedantic)]

use std::sync::Arc;
use std::time::Duration;

use fenced::prelude::*;
use fenced::{LossReason, MemoryLocks};

use crate::inventory::{Inventory, OrderError, Reply};

impl Inventory {
    #[fenced(lock = "/nested/<sku>", timeout = "2m")]
    async fn strict(&self, guard: FencedGuard<'_>, sku: &str) -> Reply<i64> {
        tokio::task::yield_now().await;
        Ok(guard.token().get())
    }

    #[fenced(lock = "/nested/<sku>", timeout = "2m", reentrant)]
    async fn shares(&self, guard: FencedGuard<'_>, sku: &str) -> Reply<i64> {
        tokio::task::yield_now().await;
        self.add(&guard, 1).await?;
        Ok(guard.token().get())
    }

    #[fenced(lock = "/nested/<sku>", reentrant)]
    async fn countdown(&self, guard: FencedGuard<'_>, sku: &str, from: u32) -> Reply<i64> {
        if from > 0 {
            return Box::pin(self.countdown(sku, from - 1)).await;
        }
        Ok(guard.token().get())
    }
}

#[fenced(lock = "/nested/<sku>", service = inventory.locks)]
async fn around<T>(
    inventory: &Inventory,
    guard: FencedGuard<'_>,
    sku: &str,
    inner: impl AsyncFnOnce(i64) -> T,
) -> Reply<T> {
    Ok(inner(guard.token().get()).await)
}

/// Longer than its own `hold`, which is not what it is bound by.
#[fenced(lock = "/nested/a", service = inventory.locks, reentrant, hold = Duration::ZERO)]
async fn limited(inventory: &Inventory, guard: FencedGuard<'_>) -> Reply<i64> {
    tokio::task::yield_now().await;
    Ok(inventory.add(&guard, 1).await?)
}

#[tokio::test]
async fn the_limit_of_a_shared_lease_is_that_of_who_took_it() {
    let inventory = Inventory::default();
    let alone = limited(&inventory).await;
    assert!(
        matches!(&alone, Err(OrderError::Lock(LockError::Lost(loss))) if loss.reason == LossReason::HoldExceeded),
        "{alone:?}"
    );
    let (inner, left) = section(&inventory.locks, "/nested/a")
        .hold(Duration::from_mins(1))
        .run(async |guard| (limited(&inventory).await, guard.remaining()))
        .await
        .unwrap();
    assert_eq!(inner.unwrap(), 1);
    assert!(left > Duration::ZERO);
}

fn is_reentrant(reply: &Reply<i64>) -> bool {
    matches!(reply, Err(OrderError::Lock(LockError::Reentrant { path, .. })) if path.as_str() == "/nested/a")
}

#[tokio::test]
async fn an_inner_section_fails_at_once() {
    let inventory = Inventory::default();
    let inner = around(&inventory, "a", async |_| inventory.strict("a").await);
    assert!(is_reentrant(&inner.await.unwrap()));
    let other = around(&inventory, "a", async |_| inventory.strict("b").await);
    assert_eq!(other.await.unwrap().unwrap(), 3);
}

#[tokio::test]
async fn an_inner_section_shares_the_lease_if_it_may() {
    let inventory = Inventory::default();
    around(&inventory, "a", async |token| {
        assert_eq!(inventory.shares("a").await.unwrap(), token);
        assert_eq!(inventory.countdown("a", 3).await.unwrap(), token);
        let held = inventory.locks.token("/nested/a").unwrap();
        assert_eq!(held.get(), token, "the inner section must not release");
    })
    .await
    .unwrap();
    assert_eq!(inventory.locks.token("/nested/a"), None);
}

#[tokio::test]
async fn the_branches_of_a_join_are_inside() {
    let inventory = Inventory::default();
    around(&inventory, "a", async |token| {
        let (strict, shared, other) = tokio::join!(
            inventory.strict("a"),
            inventory.shares("a"),
            inventory.strict("b")
        );
        assert!(is_reentrant(&strict));
        assert_eq!(shared.unwrap(), token);
        assert!(other.unwrap() > token);
        let both = tokio::join!(inventory.shares("a"), inventory.shares("a"));
        assert_eq!((both.0.unwrap(), both.1.unwrap()), (token, token));
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn branches_beside_a_section_are_not_inside() {
    let inventory = Inventory::default();
    let (a, b) = tokio::join!(inventory.strict("a"), inventory.strict("a"));
    assert_eq!((a.unwrap(), b.unwrap()), (1, 2));
}

#[tokio::test]
async fn a_spawned_task_is_another_contender() {
    let inventory = Arc::new(Inventory::default());
    let mut spawned = None;
    around(&inventory, "a", async |_| {
        let other = Arc::clone(&inventory);
        spawned = Some(tokio::spawn(async move { other.shares("a").await }));
        while inventory.locks.waiters("/nested/a") == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(spawned.unwrap().await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn the_same_path_of_another_service_is_another_lock() {
    let (inventory, other) = (Inventory::default(), Inventory::default());
    let inner = around(&inventory, "a", async |_| other.strict("a").await);
    assert_eq!(inner.await.unwrap().unwrap(), 1);
    let handle = Inventory {
        locks: inventory.locks.clone(),
        ..Inventory::default()
    };
    let inner = around(&inventory, "a", async |_| handle.strict("a").await);
    assert!(
        is_reentrant(&inner.await.unwrap()),
        "a clone is the same service"
    );
}

#[tokio::test]
async fn a_shared_lease_that_is_lost_is_not_shared_again() {
    let inventory = Inventory::default();
    let inner = section(&inventory.locks, "/nested/a")
        .on_lost(fenced::OnLost::Finish)
        .run(async |_guard| {
            inventory
                .locks
                .lose("/nested/a", LossReason::SessionExpired);
            inventory.shares("a").await
        })
        .await
        .unwrap();
    assert!(
        matches!(&inner, Err(OrderError::Lock(LockError::Lost(loss))) if loss.reason == LossReason::SessionExpired),
        "{inner:?}"
    );
}

#[tokio::test]
async fn after_an_early_release_the_lock_is_taken_anew() {
    let locks = MemoryLocks::new();
    let inventory = Inventory {
        locks: locks.clone(),
        ..Inventory::default()
    };
    let tokens = section(&locks, "/nested/a").run(async |guard| {
        let outer = guard.token().get();
        guard.release().await.unwrap();
        (outer, inventory.strict("a").await.unwrap())
    });
    assert_eq!(tokens.await.unwrap(), (1, 2));
}
