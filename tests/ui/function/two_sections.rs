// Wanted: one function under two locks.
use fenced::prelude::*;

#[fenced(lock = "/shops/<shop>")]
#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, shop: u32, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
