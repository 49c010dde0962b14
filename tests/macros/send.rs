//! Bodies that are known to confuse the checking of auto traits on futures of higher rank:
//! rust-lang/rust#126350, #134997, #138494, #139475 and #154523 among them.
#![deny(warnings)]
#![allow(
    clippy::all,
    clippy::pedantic,
    reason = "shapes that once broke a compiler"
)]

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use fenced::prelude::*;
use fenced::{FencedGuard, MemoryLocks};
use futures::stream::{FuturesUnordered, TryStreamExt as _};

use crate::inventory::{Inventory, Reply, assert_send};

fn spawnable<F: Future + Send + 'static>(_: F) {}

trait Visitor: Send + Sync {
    fn visit<'a>(&'a self, text: &'a str) -> Pin<Box<dyn Future<Output = usize> + Send + 'a>>;
}

struct Service<L> {
    locks: L,
    inventory: Inventory,
    map: HashMap<String, Vec<i64>>,
    visitor: Arc<dyn Visitor>,
}

impl<L: LockService> HasLocks for Service<L> {
    fn locks(&self) -> &dyn LockService {
        &self.locks
    }
}

impl<L: LockService> Service<L> {
    #[fenced(lock = "/a/<sku>")]
    async fn joins_many(&self, guard: FencedGuard<'_>, sku: &str) -> Reply<i64> {
        let writes = self.map.values().flatten();
        let writes = writes.map(|n| self.inventory.add(&guard, *n));
        let all = futures::future::try_join_all(writes).await?;
        Ok(all.iter().sum::<i64>() + sku.len() as i64)
    }

    #[fenced(lock = "/b")]
    async fn in_any_order(&self, guard: FencedGuard<'_>, names: &[&str]) -> Reply<usize> {
        let guard = &guard;
        let one = |name: &'_ &str| {
            let name = (*name).to_owned();
            async move {
                self.inventory.add(guard, name.len() as i64).await?;
                Ok::<_, SinkError>(self.visitor.visit(&name).await)
            }
        };
        let mut tasks: FuturesUnordered<_> = names.iter().map(one).collect();
        let mut sum = 0;
        while let Some(n) = tasks.try_next().await? {
            sum += n;
        }
        Ok(sum)
    }

    #[fenced(lock = "/d/<x>")]
    async fn recursive(self: Arc<Self>, guard: FencedGuard<'_>, x: i64) -> Reply<i64> {
        self.inventory.add(&guard, x).await?;
        if x == 0 {
            return Ok(0);
        }
        Box::pin(self.clone().recursive(x - 1)).await
    }

    #[fenced(lock = "/e")]
    async fn calls_back<F, Fut>(&mut self, guard: FencedGuard<'_>, mut f: F) -> Reply<i64>
    where
        F: FnMut(i64) -> Fut + Send,
        Fut: Future<Output = i64> + Send,
    {
        let mut sum = 0;
        for (key, values) in &mut self.map {
            values.push(key.len() as i64);
            sum += f(self.inventory.add(&guard, values.len() as i64).await?).await;
        }
        Ok(sum)
    }

    #[fenced(lock = "/f")]
    async fn selects(&self, mut guard: FencedGuard<'_>) -> Reply<i64> {
        let guard = &mut guard;
        tokio::select! {
            biased;
            n = self.inventory.add(guard, 1) => Ok(n?),
            () = std::future::pending() => unreachable!(),
        }
    }
}

fn a_service_can_be_spawned<L: LockService + 'static>(service: Arc<Service<L>>) {
    let one = service.clone();
    spawnable(async move { one.joins_many("x").await });
    let one = service.clone();
    spawnable(async move { one.in_any_order(&["a", "b"]).await });
    spawnable(service.clone().recursive(3));
    spawnable(async move { service.selects().await });
}

fn a_mutable_service_can_be_spawned<L: LockService + 'static>(mut service: Service<L>) {
    spawnable(async move { service.calls_back(|n| async move { n }).await });
}

#[derive(Clone)]
struct Context<'a>(&'a ());

#[fenced(lock = "/a", service = locks)]
async fn behind_a_reference<'a>(
    locks: &MemoryLocks,
    guard: FencedGuard<'_>,
    context: &mut Context<'a>,
) -> Result<(), LockError> {
    let _ = guard.token();
    context.0 = &();
    tokio::task::yield_now().await;
    context.0 = &();
    Ok(())
}

async fn uses_a_context<'a>(locks: &MemoryLocks, mut context: Context<'a>) {
    assert_send(behind_a_reference(locks, &mut context))
        .await
        .unwrap();
    assert_send(async { behind_a_reference(locks, &mut context).await.unwrap() }).await;
}

static SYSTEM: OnceLock<i64> = OnceLock::new();

#[fenced(lock = "/a", service = locks)]
async fn nested_references<'a, 'b>(
    locks: &'b MemoryLocks,
    guard: FencedGuard<'_>,
    system: &'static OnceLock<i64>,
    text: &'a &'b str,
    measure: &'a (dyn Fn(&str) -> usize + Send + Sync + 'b),
    inventory: &Inventory,
) -> Reply<usize> {
    let text = &text;
    inventory.add(&guard, *system.get_or_init(|| 1)).await?;
    Ok(measure(text))
}

async fn uses_references(locks: &MemoryLocks, inventory: &Inventory) -> usize {
    let text = String::from("x");
    let text: &str = &text;
    let length = text.len();
    let measure = |text: &str| text.len() + length;
    assert_send(async move {
        let mut sum = 0;
        while sum <= 3 {
            sum += nested_references(locks, &SYSTEM, &text, &measure, inventory)
                .await
                .unwrap();
        }
        sum
    })
    .await
}

#[fenced(lock = "/a", service = locks)]
async fn captures_a_sender(
    locks: &MemoryLocks,
    guard: FencedGuard<'_>,
    sender: &tokio::sync::mpsc::Sender<i64>,
) -> Result<(), LockError> {
    let _ = sender.send(guard.token().get()).await;
    let local = sender.clone();
    let _ = local.send(1).await;
    let by_reference = &local;
    let _ = by_reference.send(2).await;
    Ok(())
}

struct Arena;

impl Arena {
    fn reset(&mut self) {}
}

#[fenced(lock = "/a/<name>", service = locks)]
async fn mutates_a_capture<'a>(
    locks: &MemoryLocks,
    guard: FencedGuard<'_>,
    name: &'a str,
    arena: &mut Arena,
) -> Result<&'a str, LockError> {
    arena.reset();
    tokio::task::yield_now().await;
    arena.reset();
    let _ = guard.token();
    Ok(name)
}

/// A service type with lifetimes and parameters of its own.
struct Scoped<'a, 'b, L, T: ?Sized> {
    locks: &'a L,
    name: &'b str,
    value: &'a T,
}

impl<'a, 'b, L: LockService, T: Sync + ?Sized + 'a> Scoped<'a, 'b, L, T> {
    #[fenced(lock = "/a/<self.name>", service = self.locks)]
    async fn swap(
        &mut self,
        guard: FencedGuard<'_>,
        other: &Self,
        name: &mut &'b str,
    ) -> Result<&'a T, LockError> {
        tokio::task::yield_now().await;
        *name = other.name;
        let _ = guard.token();
        tokio::task::yield_now().await;
        Ok(self.value)
    }
}

fn uses_scoped<'a, L: LockService>(
    locks: &'a L,
    text: &'a str,
) -> impl Future<Output = usize> + Send + 'a {
    async move {
        let owned = text.to_owned();
        let new = || Scoped {
            locks,
            name: text,
            value: owned.as_str(),
        };
        let (mut one, two, mut name) = (new(), new(), text);
        one.swap(&two, &mut name).await.unwrap().len()
    }
}

struct Length;

impl Visitor for Length {
    fn visit<'a>(&'a self, text: &'a str) -> Pin<Box<dyn Future<Output = usize> + Send + 'a>> {
        Box::pin(async move { text.len() })
    }
}

#[tokio::test]
async fn hard_bodies_can_be_spawned() {
    let service = || Service {
        locks: MemoryLocks::new(),
        inventory: Inventory::default(),
        map: HashMap::from([("k".to_owned(), vec![1, 2])]),
        visitor: Arc::new(Length),
    };
    a_service_can_be_spawned(Arc::new(service()));
    a_mutable_service_can_be_spawned(service());
    tokio::spawn(async move {
        let mut service = service();
        assert_eq!(service.joins_many("x").await.unwrap(), 1 + 3 + 1);
        assert_eq!(service.in_any_order(&["a", "bc"]).await.unwrap(), 3);
        assert_eq!(service.selects().await.unwrap(), 7);
        let sum = service.calls_back(|n| async move { n }).await;
        assert_eq!(sum.unwrap(), 10);
        let (locks, inventory) = (&service.locks, &service.inventory);
        uses_a_context(locks, Context(&())).await;
        assert!(uses_references(locks, inventory).await > 3);
        let (sender, mut receiver) = tokio::sync::mpsc::channel(8);
        assert_send(captures_a_sender(locks, &sender))
            .await
            .unwrap();
        assert!(receiver.recv().await.is_some());
        assert_eq!(assert_send(uses_scoped(locks, "t")).await, 1);
        let mutated = mutates_a_capture(locks, "d", &mut Arena).await;
        assert_eq!(mutated.unwrap(), "d");
        assert_eq!(Arc::new(service).recursive(2).await.unwrap(), 0);
    })
    .await
    .unwrap();
}
