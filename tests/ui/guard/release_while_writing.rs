// Wanted: to free the lock while a write is under way.
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
    let stock = guard.fence(stock);
    let claim = stock.claim();
    guard.release().await?;
    claim.await?;
    Ok(())
}

fn main() {}
