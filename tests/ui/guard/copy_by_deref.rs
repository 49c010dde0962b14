// Wanted: to get a guard out of a reference to one.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    take(*(&guard));
    Ok(0)
}

fn take(_: FencedGuard<'_>) {}

fn main() {}
