// Wanted: to wait three seconds.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", timout = "3s")]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
