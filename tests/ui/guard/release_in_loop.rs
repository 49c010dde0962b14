// Wanted: to free the lock after each line of an order.
use fenced::MemorySink;
use fenced::prelude::*;

#[derive(Debug)]
struct OrderError;

impl From<LockError> for OrderError {
    fn from(_: LockError) -> Self {
        Self
    }
}

impl From<SinkError> for OrderError {
    fn from(_: SinkError) -> Self {
        Self
    }
}

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str, stock: &MemorySink) -> Result<(), OrderError> {
    for _ in 0..3 {
        guard.fence(stock).claim().await?;
        guard.release().await?;
    }
    Ok(())
}

fn main() {}
