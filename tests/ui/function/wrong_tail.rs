// Wanted: to return the value without `Ok`.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    guard.token().get()
}

fn main() {}
