// Wanted: a guard that lives for ever.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'static>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
