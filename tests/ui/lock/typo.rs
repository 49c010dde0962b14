// Wanted: a lock for each SKU.
use fenced::prelude::*;

#[fenced(lock = "/locks/<skuu>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
