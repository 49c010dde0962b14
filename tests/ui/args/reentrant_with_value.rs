// Wanted: to say explicitly that the lock is reentrant.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", reentrant = true)]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
