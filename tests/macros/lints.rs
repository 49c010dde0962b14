//! The body's own lints fire, and nothing else does.
#![deny(warnings, clippy::all, clippy::pedantic)]

use std::future::Future;

use fenced::MemoryLocks;
use fenced::prelude::*;
use futures::future::BoxFuture;

use crate::inventory::{Inventory, Reply};

impl Inventory {
    #[expect(unused_variables)]
    #[fenced(lock = "/lints")]
    async fn unused_guard(&self, guard: FencedGuard<'_>) -> Reply<()> {
        Ok(())
    }

    #[fenced(lock = "/lints")]
    async fn in_the_body(&self, guard: FencedGuard<'_>) -> Reply<i64> {
        #[expect(unused_variables)]
        let unused = 1;
        #[expect(unused_mut)]
        let mut never_mutated = 1_i32;
        #[expect(clippy::cast_lossless)]
        let wide = never_mutated as i64;
        self.add(&guard, wide).await?;
        #[expect(clippy::needless_return)]
        return Ok(wide);
    }

    #[fenced(lock = "/lints/<name>")]
    async fn by_value(&self, guard: FencedGuard<'_>, name: String) -> Reply<usize> {
        self.add(&guard, 1).await?;
        Ok(name.len())
    }

    #[expect(clippy::unused_async)]
    async fn control(&self) -> u32 {
        self.sold
    }

    #[expect(dead_code)]
    #[fenced(lock = "/lints")]
    async fn never_called(&self, _guard: FencedGuard<'_>) -> Reply<()> {
        Ok(())
    }
}

/// A body of one line, in braces of its own.
#[fenced(lock = "/lints", service = locks)]
#[rustfmt::skip]
async fn one_line(guard: FencedGuard<'_>, locks: &MemoryLocks) -> Result<i64, LockError> { Ok(guard.token().get()) }

#[fenced(lock = "/lints", service = locks)]
async fn braces_of_their_own(
    guard: FencedGuard<'_>,
    locks: &MemoryLocks,
) -> Result<i64, LockError> {
    let token = guard.token().get();
    #[expect(unused_braces, clippy::blocks_in_conditions)]
    let token = if { token > 0 } { token } else { 0 };
    #[expect(unused_parens)]
    let none = (0);
    Ok(token + none)
}

#[expect(clippy::manual_async_fn)]
#[fenced(lock = "/lints", service = locks)]
#[rustfmt::skip]
fn future(guard: FencedGuard<'_>, locks: &MemoryLocks) -> impl Future<Output = Outcome> + '_ { async move { Ok(guard.token().get()) } }

/// A future whose output the attribute cannot read off.
#[fenced(lock = "/lints", service = locks)]
#[rustfmt::skip]
fn boxed(guard: FencedGuard<'_>, locks: MemoryLocks) -> BoxFuture<'static, Outcome> { Box::pin(async move { Ok(guard.token().get()) }) }

/// An attribute that stands inside.
#[fenced(lock = "/lints", service = locks)]
async fn inner_attribute(_guard: FencedGuard<'_>, locks: &MemoryLocks) -> Outcome {
    #![allow(unused_variables)]
    let unused = 1;
    Ok(0)
}

#[fenced(lock = "/lints", service = locks)]
async fn never_ends(guard: FencedGuard<'_>, locks: &MemoryLocks) -> Outcome {
    drop(guard);
    panic!("not yet written")
}

#[expect(clippy::let_and_return)]
#[fenced(lock = "/lints", service = locks)]
async fn names_its_answer(guard: FencedGuard<'_>, locks: &MemoryLocks) -> Outcome {
    let answer = Ok(guard.token().get());
    answer
}

type Outcome = Result<i64, LockError>;

#[tokio::test]
async fn functions_of_one_line_run() {
    let locks = MemoryLocks::new();
    assert_eq!(one_line(&locks).await.unwrap(), 1);
    assert_eq!(braces_of_their_own(&locks).await.unwrap(), 2);
    assert_eq!(future(&locks).await.unwrap(), 3);
    assert_eq!(boxed(locks.clone()).await.unwrap(), 4);
    assert_eq!(inner_attribute(&locks).await.unwrap(), 0);
    assert_eq!(names_its_answer(&locks).await.unwrap(), 6);
    let panicked = tokio::spawn(async move { never_ends(&locks).await });
    assert!(panicked.await.unwrap_err().is_panic());
}

#[tokio::test]
async fn annotated_functions_run() {
    let inventory = Inventory::default();
    inventory.unused_guard().await.unwrap();
    assert_eq!(inventory.in_the_body().await.unwrap(), 1);
    let name = "four".to_owned();
    assert_eq!(inventory.by_value(name).await.unwrap(), 4);
    assert_eq!(inventory.control().await, 0);
}
