// Wanted: a lock for each token.
use fenced::prelude::*;

#[fenced(lock = "/locks/<guard>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
