// Wanted: no limit on how long the lock is held.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", hold = "0s")]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
