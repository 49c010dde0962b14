// Wanted: a lock around code that fences nothing.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(sku: &str) -> Result<i64, LockError> {
    Ok(0)
}

fn main() {}
