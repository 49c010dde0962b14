use fenced::prelude::*;
use serde::Serialize;

use crate::event::{Event, Place};
use crate::stall;
use crate::stock::{self, Stock};

/// The service: it sells from the stock, one sale of a product at a time.
pub(crate) struct Shop {
    pub(crate) locks: Box<dyn LockService>,
    pub(crate) stock: Stock,
}

#[derive(Clone, Serialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) sku: String,
    pub(crate) quantity: i64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error("{0}")]
    Stock(#[from] crate::world::Failure),
    #[error("only {0} left")]
    SoldOut(i64),
}

impl HasLocks for Shop {
    fn locks(&self) -> &dyn LockService {
        &*self.locks
    }
}

impl Shop {
    /// Puts the first pieces into the shop.
    #[fenced(lock = "/locks/inventory/<order.sku>")]
    pub(crate) async fn open(
        &self,
        guard: FencedGuard<'_>,
        order: &Order,
    ) -> Result<(), OrderError> {
        let request = Request::new(&order.id, order);
        let write = stock::open_shop(&order.sku, order.quantity);
        guard
            .fence(&*self.stock.sales)
            .write(&request, write)
            .await?;
        Ok(())
    }

    /// Sells, and says how many are left.
    #[fenced(lock = "/locks/inventory/<order.sku>", timeout = "60s")]
    pub(crate) async fn sell(
        &self,
        guard: FencedGuard<'_>,
        order: &Order,
    ) -> Result<i64, OrderError> {
        self.sell_under(&guard, order, None).await
    }

    /// As [`sell`](Self::sell), by a worker that stops after it has read the stock.
    #[fenced(lock = "/locks/inventory/<order.sku>", timeout = "60s")]
    pub(crate) async fn sell_and_stop_between(
        &self,
        guard: FencedGuard<'_>,
        order: &Order,
    ) -> Result<i64, OrderError> {
        let place = Some(Place::BetweenSteps);
        self.sell_under(&guard, order, place).await
    }

    /// As [`sell`](Self::sell), by a body that goes on although the lock is lost: only the
    /// database stands in its way.
    #[fenced(
        lock = "/locks/inventory/<order.sku>",
        timeout = "60s",
        on_lost = "finish"
    )]
    pub(crate) async fn sell_whatever_happens(
        &self,
        guard: FencedGuard<'_>,
        order: &Order,
    ) -> Result<i64, OrderError> {
        self.sell_under(&guard, order, None).await
    }

    async fn sell_under(
        &self,
        guard: &FencedGuard<'_>,
        order: &Order,
        stop: Option<Place>,
    ) -> Result<i64, OrderError> {
        let token = guard.token().get();
        let stock = guard.fence(&*self.stock.sales);
        stock.claim().await?;
        Event::Granted { token }.tell();
        let count = self.stock.shelf.count(&order.sku).await?;
        Event::Read { token, count }.tell();
        if let Some(place) = stop {
            stall::stop_here(token, place);
        }
        let left = count - order.quantity;
        if left < 0 {
            return Err(OrderError::SoldOut(count));
        }
        Event::Writing { token, left }.tell();
        let request = Request::new(&order.id, order);
        let write = vec![stock::leave(&order.sku, left)];
        if stock.write(&request, write).await?.is_replayed() {
            return Ok(count); // this very order was answered before
        }
        let quantity = order.quantity;
        Event::Sold {
            token,
            quantity,
            left,
        }
        .tell();
        Ok(left)
    }
}
