// Wanted: to pass a guard at the call.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

async fn order(guard: FencedGuard<'_>) {
    let _ = reserve(guard, "4711").await;
}

fn main() {}
