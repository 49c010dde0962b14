// Wanted: two timeouts.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", timeout = "3s", timeout = "5s")]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
