// Wanted: a path with a slash at its end.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>/")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
