use std::num::ParseIntError;

use fenced::prelude::*;
use fenced::{MemoryLocks, MemorySink, MemoryWrite};

/// What a service's error looks like.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error("not a quantity")]
    Quantity(#[from] ParseIntError),
    #[error("nothing ordered")]
    Empty,
}

/// A name that no macro knows for a `Result`.
pub(crate) type Reply<T> = Result<T, OrderError>;

pub(crate) struct Order {
    pub(crate) sku: String,
    pub(crate) lines: (u32, u32),
}

impl Order {
    pub(crate) fn of(sku: &str) -> Self {
        let sku = sku.to_owned();
        Self { sku, lines: (1, 2) }
    }
}

/// What a service looks like.
#[derive(Default)]
pub(crate) struct Inventory {
    pub(crate) locks: MemoryLocks,
    pub(crate) stock: MemorySink,
    pub(crate) shop: String,
    pub(crate) sold: u32,
}

impl HasLocks for Inventory {
    fn locks(&self) -> &dyn LockService {
        &self.locks
    }
}

impl Inventory {
    pub(crate) fn of(shop: &str) -> Self {
        let shop = shop.to_owned();
        Self {
            shop,
            ..Self::default()
        }
    }

    /// Adds to the stock under a guard, as a body does.
    pub(crate) async fn add(&self, guard: &FencedGuard<'_>, amount: i64) -> Result<i64, SinkError> {
        let stock = guard.fence(&self.stock);
        stock.claim().await?;
        let request = Request::new(format!("{}-{amount}", guard.token()), &amount);
        let written = stock
            .write(&request, MemoryWrite::add("stock", amount))
            .await?;
        Ok(written.into_answer())
    }
}

pub(crate) fn assert_send<T: Send>(value: T) -> T {
    value
}
