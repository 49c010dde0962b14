// Wanted: a hole for the only parameter.
use fenced::prelude::*;

#[fenced(lock = "/locks/<>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
