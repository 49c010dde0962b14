// Wanted: to release in the background.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", release = "background")]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
