// Wanted: to let the caller go on under the lock.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<FencedGuard<'_>, LockError> {
    Ok(guard)
}

fn main() {}
