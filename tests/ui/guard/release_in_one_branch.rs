// Wanted: to free the lock early for small orders, and write in any case.
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
    if sku.len() < 3 {
        guard.release().await?;
    }
    guard.fence(stock).claim().await?;
    Ok(())
}

fn main() {}
