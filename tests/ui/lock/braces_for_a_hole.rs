// Wanted: a lock for each SKU, written as in `format!`.
use fenced::prelude::*;

#[fenced(lock = "/locks/{sku}")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
