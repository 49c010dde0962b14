// Wanted: a section, in a hurry.
use fenced::prelude::*;

#[fenced(lock = "locks/<sku>", timout = "3s", hold = "3", retries = 5, crate = fenced)]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
