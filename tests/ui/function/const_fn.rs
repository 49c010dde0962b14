// Wanted: a lock at compile time.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
const fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
