// Wanted: a guard for each of two branches.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    let other = guard.clone();
    Ok(other.token().get())
}

fn main() {}
