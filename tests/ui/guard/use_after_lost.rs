// Wanted: to write although the lease was lost meanwhile.
use fenced::prelude::*;
use fenced::{Hold, MemorySink};

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
    match guard.hold(tokio::task::yield_now()).await {
        Hold::Held(guard, ()) => guard.fence(stock).claim().await?,
        Hold::Lost(_) => guard.fence(stock).claim().await?,
    }
    Ok(())
}

fn main() {}
