// Wanted: a lock, without saying which.
use fenced::prelude::*;

#[fenced]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
