// Wanted: to wait for ever.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", timeout = "99999999999999999999s")]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
