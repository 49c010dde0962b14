// Wanted: three seconds, as a number.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", timeout = 3)]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
