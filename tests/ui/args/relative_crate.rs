// Wanted: to name a re-export.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", crate = fenced)]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
