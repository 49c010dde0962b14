//! Functions and methods; each runs on a runtime of several threads, so each is `Send`.
#![deny(warnings, clippy::all, clippy::pedantic)]

use std::fmt::{Debug, Display};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use fenced::prelude::*;
use fenced::{MemoryLocks, MemorySink};

use crate::inventory::{Inventory, Order, OrderError, Reply, assert_send};

impl Inventory {
    #[fenced(lock = "/<sku>", timeout = "3s")]
    async fn early_returns(
        &self,
        guard: FencedGuard<'_>,
        sku: &str,
        quantity: &str,
    ) -> Reply<String> {
        if quantity.is_empty() {
            return Err(OrderError::Empty);
        }
        let quantity: u32 = quantity.parse()?;
        self.add(&guard, i64::from(quantity)).await?;
        Ok(format!("{}*{quantity}", guard.path()))
    }

    #[fenced(lock = "/count", service = self.locks)]
    async fn mutable(&mut self, guard: FencedGuard<'_>, by: &mut u32) -> Reply<u32> {
        self.add(&guard, 1).await?;
        self.sold += *by;
        *by = 0;
        Ok(self.sold)
    }

    #[fenced(lock = "/count")]
    async fn lends_a_field(&mut self, guard: FencedGuard<'_>) -> Reply<&mut u32> {
        self.add(&guard, 1).await?;
        Ok(&mut self.sold)
    }

    #[fenced(lock = "/count")]
    async fn lends_itself(&mut self, guard: FencedGuard<'_>) -> Result<&mut Self, LockError> {
        let _ = guard.token();
        tokio::task::yield_now().await;
        self.sold += 1;
        Ok(self)
    }

    #[fenced(lock = "/count")]
    async fn consumed(mut self, guard: FencedGuard<'_>, mut words: Vec<u8>) -> Reply<usize> {
        self.add(&guard, 1).await?;
        self.sold += 1;
        words.push(1);
        drop(self);
        Ok(words.len())
    }

    #[fenced(lock = "/<a>/<b>")]
    async fn patterns(
        self: &Arc<Self>,
        guard: FencedGuard<'_>,
        (a, b): (u8, u8),
        mut c: Vec<u8>,
        _: bool,
        Order { sku, lines: _ }: Order,
    ) -> Reply<usize> {
        c.extend([a, b]);
        self.add(&guard, 1).await?;
        Ok(c.len() + sku.len())
    }

    #[fenced(lock = "/arc")]
    async fn shared(self: Arc<Self>, guard: FencedGuard<'_>) -> Reply<Arc<Self>> {
        self.add(&guard, 1).await?;
        Ok(self)
    }

    #[fenced(lock = "/generic/<key>")]
    async fn generic<'a, K, V>(
        &self,
        guard: FencedGuard<'_>,
        key: &'a K,
        values: impl IntoIterator<Item = V> + Send,
        count: impl Fn(&V) -> i64 + Send,
    ) -> Reply<(&'a K, i64)>
    where
        K: LockSegment + Sync + ?Sized,
        V: Debug + Send,
    {
        let mut sum = 0;
        for value in values.into_iter().collect::<Vec<_>>() {
            sum = self.add(&guard, count(&value)).await?;
        }
        Ok((key, sum))
    }

    #[fenced(lock = "/borrow")]
    async fn lends_shared(&self, guard: FencedGuard<'_>) -> Result<&MemorySink, SinkOrLock> {
        self.add(&guard, 1).await?;
        Ok(&self.stock)
    }

    #[fenced(lock = "/opaque")]
    async fn opaque(&self, guard: FencedGuard<'_>) -> Reply<impl Display + use<>> {
        self.add(&guard, 1).await?;
        Ok("shown")
    }

    #[fenced(lock = "/future/<sku>")]
    fn future<'a>(
        &'a self,
        guard: FencedGuard<'_>,
        sku: &'a str,
    ) -> impl Future<Output = Reply<usize>> + Send + use<'a> {
        let length = sku.len();
        async move {
            self.add(&guard, 1).await?;
            Ok(length)
        }
    }

    #[fenced(lock = "/boxed/<sku>")]
    fn boxed<'a>(
        &'a self,
        guard: FencedGuard<'_>,
        sku: &'a str,
    ) -> Pin<Box<dyn Future<Output = Reply<usize>> + Send + 'a>> {
        Box::pin(async move {
            self.add(&guard, 1).await?;
            Ok(sku.len())
        })
    }

    #[fenced(lock = "/countdown/<from>")]
    async fn recursive(&self, guard: FencedGuard<'_>, from: u32) -> Reply<i64> {
        if from == 0 {
            return Ok(0);
        }
        let below = Box::pin(self.recursive(from - 1)).await?;
        self.add(&guard, 1).await?;
        Ok(below + 1)
    }

    #[fenced(lock = "/outer")]
    async fn nested(&self, guard: FencedGuard<'_>) -> Reply<i64> {
        let inner = self.future("inner").await?;
        let (a, b) = tokio::join!(self.add(&guard, 1), self.add(&guard, 2));
        Ok(a?.max(b?) + i64::try_from(inner).unwrap_or(0))
    }

    #[fenced(lock = "/two/<of>")]
    async fn beside(
        &self,
        guard: FencedGuard<'_>,
        of: &str,
        outer: &FencedGuard<'_>,
    ) -> Reply<bool> {
        tokio::task::yield_now().await;
        Ok(guard.token() > outer.token())
    }

    #[fenced(lock = "/associated", service = locks)]
    async fn associated(guard: FencedGuard<'_>, locks: &MemoryLocks) -> Result<Self, LockError> {
        let _ = guard.token();
        Ok(Self {
            locks: locks.clone(),
            ..Self::default()
        })
    }
}

#[derive(Debug, thiserror::Error)]
enum SinkOrLock {
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(transparent)]
    Lock(#[from] LockError),
}

#[fenced(lock = "/free/<id>", service = locks)]
async fn free(locks: &MemoryLocks, guard: FencedGuard<'_>, id: u64) -> Reply<(String, i64)> {
    Ok((format!("{}{id}", guard.path()), guard.token().get()))
}

async fn borrowed(mut inventory: Inventory) -> Inventory {
    let mut by = 2;
    assert_eq!(assert_send(inventory.mutable(&mut by)).await.unwrap(), 2);
    *assert_send(inventory.lends_a_field()).await.unwrap() += 1;
    assert_send(inventory.lends_itself()).await.unwrap().sold += 1;
    assert_eq!((by, inventory.sold), (0, 5));
    inventory
}

async fn every_shape() {
    let mut inventory = borrowed(Inventory::default()).await;
    inventory.sold = 0;
    let inventory = Arc::new(inventory);
    let replied = assert_send(inventory.early_returns("abc", "7")).await;
    assert_eq!(replied.unwrap(), "/abc*7");
    let refused = inventory.early_returns("abc", "").await;
    assert!(matches!(refused, Err(OrderError::Empty)));
    let refused = inventory.early_returns("abc", "x").await;
    assert!(matches!(refused, Err(OrderError::Quantity(_))));

    let patterns = inventory.patterns((1, 2), vec![], true, Order::of("x"));
    assert_eq!(assert_send(patterns).await.unwrap(), 3);
    let shared = assert_send(Arc::clone(&inventory).shared()).await.unwrap();
    assert!(Arc::ptr_eq(&inventory, &shared));
    let generic = assert_send(inventory.generic("a/b", [1_u8, 2], |n| i64::from(*n))).await;
    assert_eq!(generic.unwrap().0, "a/b");
    assert_send(inventory.lends_shared()).await.unwrap();
    let opaque = assert_send(inventory.opaque()).await.unwrap();
    assert_eq!(opaque.to_string(), "shown");
    assert_eq!(assert_send(inventory.future("four")).await.unwrap(), 4);
    assert_eq!(assert_send(inventory.boxed("four")).await.unwrap(), 4);
    assert_eq!(assert_send(inventory.recursive(3)).await.unwrap(), 3);
    assert_send(inventory.nested()).await.unwrap();
    let (path, _) = assert_send(free(&inventory.locks, 41)).await.unwrap();
    assert_eq!(path, "/free/4141");
    let owned = Inventory::associated(&inventory.locks).await.unwrap();
    assert_eq!(assert_send(owned.consumed(vec![])).await.unwrap(), 1);
    let inner = section(&inventory.locks, "/two/outer")
        .run(async |outer| inventory.beside("inner", &outer).await)
        .await;
    assert!(inner.unwrap().unwrap());
}

#[tokio::test]
async fn every_shape_runs_and_can_be_spawned() {
    tokio::spawn(every_shape()).await.unwrap();
}
