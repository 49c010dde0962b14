// Wanted: to name the lock without naming the argument.
use fenced::prelude::*;

#[fenced("/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
