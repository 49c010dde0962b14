// Wanted: two arguments.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock" timeout = "3s")]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
