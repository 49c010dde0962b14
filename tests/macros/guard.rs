//! What a body learns from its guard, and what it may do with it.
#![deny(warnings, clippy::all, clippy::pedantic)]

use std::time::Duration;

use fenced::prelude::*;
use fenced::{MemoryLocks, Released};

use crate::inventory::{Inventory, Reply};

impl Inventory {
    #[fenced(lock = "/guard/<sku>")]
    async fn tells(&self, guard: FencedGuard<'_>, sku: &str) -> Reply<()> {
        let path = guard.path().to_string();
        assert_eq!(path, format!("/guard/{sku}"));
        assert_eq!(self.locks.token(&path), Some(guard.token()));
        assert!(guard.remaining() > Duration::ZERO);
        assert!(!guard.is_suspect() && !guard.revoke_requested());
        self.locks.ask_to_release(&path);
        guard.disturbed().await;
        assert!(guard.revoke_requested());
        self.locks.disconnect();
        assert!(guard.is_suspect());
        self.locks.reconnect();
        assert!(!guard.is_suspect());
        Ok(())
    }

    #[fenced(lock = "/guard")]
    async fn releases_early(&self, guard: FencedGuard<'_>) -> Reply<Released> {
        self.add(&guard, 1).await?;
        let released = guard.release().await?;
        assert_eq!(self.locks.token("/guard"), None);
        let next = section(&self.locks, "/guard").run(async |next| next.token());
        assert!(next.await.is_ok());
        Ok(released)
    }
}

/// Passes the guard down by reference, then by value.
async fn in_steps(inventory: &Inventory, guard: FencedGuard<'_>) -> Reply<Released> {
    step(inventory, &guard).await?;
    Ok(guard.release().await?)
}

async fn step(inventory: &Inventory, guard: &FencedGuard<'_>) -> Reply<i64> {
    Ok(inventory.add(guard, 1).await?)
}

#[fenced(lock = "/guard", service = inventory.locks)]
async fn passes_down(inventory: &Inventory, guard: FencedGuard<'_>) -> Reply<Released> {
    in_steps(inventory, guard).await
}

/// A task that never sees the guard, although it calls something of its own by that name.
#[fenced(lock = "/guard", service = locks)]
async fn spawns_another_guard(
    locks: &MemoryLocks,
    guard: FencedGuard<'_>,
) -> Result<u8, LockError> {
    let _ = guard.token();
    let task = tokio::spawn(async {
        let mutex = tokio::sync::Mutex::new(1);
        let guard = mutex.lock().await;
        *guard
    });
    Ok(task.await.unwrap_or_default())
}

/// A thread that ends before the section does.
#[fenced(lock = "/guard", service = locks)]
async fn lends_to_a_scoped_thread(
    locks: &MemoryLocks,
    guard: FencedGuard<'_>,
) -> Result<bool, LockError> {
    let there = std::thread::scope(|scope| scope.spawn(|| guard.token()).join());
    Ok(there.is_ok_and(|token| token == guard.token()))
}

#[fenced(lock = "/guard", service = locks)]
#[expect(clippy::forget_non_drop, reason = "what a forgetful body does")]
async fn forgets(locks: &MemoryLocks, guard: FencedGuard<'_>) -> Result<(), LockError> {
    std::mem::forget(guard);
    Ok(())
}

#[tokio::test]
async fn a_guard_knows_its_lease() {
    Inventory::default().tells("x").await.unwrap();
}

#[tokio::test]
async fn an_early_release_frees_the_lock_at_once() {
    let inventory = Inventory::default();
    let released = inventory.releases_early().await.unwrap();
    assert_eq!(released, Released::Confirmed);
    assert_eq!(passes_down(&inventory).await.unwrap(), Released::Confirmed);
}

#[tokio::test]
async fn what_ends_before_the_section_may_use_the_guard() {
    let locks = MemoryLocks::new();
    assert_eq!(spawns_another_guard(&locks).await.unwrap(), 1);
    assert!(lends_to_a_scoped_thread(&locks).await.unwrap());
    forgets(&locks).await.unwrap();
    assert_eq!(
        locks.token("/guard"),
        None,
        "a forgotten guard keeps nothing"
    );
}
