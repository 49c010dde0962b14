//! Methods of traits, called through generics and through `dyn`.
#![deny(warnings, clippy::all, clippy::pedantic)]

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use fenced::MemorySink;
use fenced::prelude::*;

use crate::inventory::{Inventory, OrderError, Reply, assert_send};

/// The callers' trait knows nothing of guards.
trait Reserve {
    fn reserve(&self, sku: &str) -> impl Future<Output = Reply<i64>> + Send;
}

impl Reserve for Inventory {
    #[fenced(lock = "/native/<sku>")]
    async fn reserve(&self, guard: FencedGuard<'_>, sku: &str) -> Reply<i64> {
        tokio::task::yield_now().await;
        Ok(self.add(&guard, 1).await? + i64::try_from(sku.len()).unwrap_or(0))
    }
}

trait Restock: HasLocks + Sync {
    fn stock(&self) -> &MemorySink;

    #[fenced(lock = "/default/<n>")]
    fn restock(
        &self,
        guard: FencedGuard<'_>,
        n: u32,
    ) -> impl Future<Output = Result<u32, OrderError>> + Send {
        async move {
            guard.fence(self.stock()).claim().await?;
            Ok(n)
        }
    }
}

impl Restock for Inventory {
    fn stock(&self) -> &MemorySink {
        &self.stock
    }
}

/// Native, on the trait's side too.
trait Count: HasLocks {
    async fn count_all(&self) -> Reply<i64>;

    #[fenced(lock = "/count/<n>")]
    async fn count_one(&self, guard: FencedGuard<'_>, n: u8) -> Result<String, LockError>
    where
        Self: Sized,
    {
        tokio::task::yield_now().await;
        Ok(format!("{} {n}", guard.path()))
    }
}

impl Count for Inventory {
    #[fenced(lock = "/count")]
    async fn count_all(&self, guard: FencedGuard<'_>) -> Reply<i64> {
        Ok(self.add(&guard, 1).await?)
    }
}

#[async_trait]
trait Service: HasLocks + Send + Sync {
    async fn sell(&self, sku: &str, quantity: i64) -> Reply<i64>;
    async fn echo<'a>(&self, text: &'a str) -> Result<&'a str, LockError>;
    async fn count(&mut self) -> Reply<u32>;

    #[fenced(lock = "/async-trait/<n>")]
    async fn defaulted(&self, guard: FencedGuard<'_>, n: u32) -> Result<String, LockError> {
        tokio::task::yield_now().await;
        Ok(format!("{} {n}", guard.path()))
    }
}

#[async_trait]
impl Service for Inventory {
    #[fenced(lock = "/dyn/<sku>")]
    async fn sell(&self, guard: FencedGuard<'_>, sku: &str, quantity: i64) -> Reply<i64> {
        if sku.is_empty() {
            return Err(OrderError::Empty);
        }
        Ok(self.add(&guard, -quantity).await?)
    }

    #[fenced(lock = "/refs")]
    async fn echo<'a>(&self, text: &'a str, guard: FencedGuard<'_>) -> Result<&'a str, LockError> {
        tokio::task::yield_now().await;
        let _ = guard.token();
        Ok(text)
    }

    #[fenced(lock = "/count", service = self.locks)]
    async fn count(&mut self, guard: FencedGuard<'_>) -> Reply<u32> {
        self.add(&guard, 1).await?;
        self.sold += 1;
        Ok(self.sold)
    }
}

#[tokio::test]
async fn methods_of_traits_take_the_lock_too() {
    tokio::spawn(async {
        let mut inventory = Inventory::default();
        assert_eq!(Service::count(&mut inventory).await.unwrap(), 1);
        let inventory = Arc::new(inventory);
        assert_eq!(assert_send(inventory.reserve("n")).await.unwrap(), 3);
        assert_eq!(assert_send(inventory.restock(9)).await.unwrap(), 9);
        assert!(inventory.stock.current("/default/9").is_some());
        assert_eq!(inventory.count_all().await.unwrap(), 3);
        assert_eq!(inventory.count_one(5).await.unwrap(), "/count/5 5");
        let service: Arc<dyn Service> = inventory.clone();
        assert_eq!(assert_send(service.sell("d", 4)).await.unwrap(), -1);
        assert!(inventory.stock.current("/dyn/d").is_some());
        assert_eq!(assert_send(service.echo("d")).await.unwrap(), "d");
        let shown = assert_send(service.defaulted(7)).await.unwrap();
        assert_eq!(shown, "/async-trait/7 7");
    })
    .await
    .unwrap();
}
