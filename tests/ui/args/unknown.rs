// Wanted: to try again five times.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", retries = 5)]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
