// Wanted: to stop writing when the lease is lost, in a `select!`.
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
    tokio::select! {
        _ = guard.revoked() => {}
        claimed = guard.fence(stock).claim() => claimed?,
    }
    Ok(())
}

fn main() {}
