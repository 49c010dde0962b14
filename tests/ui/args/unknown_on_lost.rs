// Wanted: to let the body finish.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", on_lost = "finsh")]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
