// Wanted: a lock for each SKU, in a function without parameters.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
