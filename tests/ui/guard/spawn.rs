// Wanted: to write in a task in the background.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    tokio::spawn(async move { guard.token() });
    Ok(0)
}

fn main() {}
