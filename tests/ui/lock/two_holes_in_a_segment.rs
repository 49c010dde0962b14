// Wanted: a lock for each pair.
use fenced::prelude::*;

#[fenced(lock = "/locks/<shop>-<sku>")]
async fn reserve(guard: FencedGuard<'_>, shop: &str, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
