// Wanted: a lock for a computed value.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku.len()>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
