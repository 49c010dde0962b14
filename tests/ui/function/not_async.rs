// Wanted: a lock for a function that does not wait.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
