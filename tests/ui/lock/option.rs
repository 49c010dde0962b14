// Wanted: a lock for those who may have no SKU.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: Option<String>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
