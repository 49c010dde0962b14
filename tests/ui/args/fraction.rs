// Wanted: a second and a half.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", timeout = "1.5s")]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
