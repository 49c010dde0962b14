// Wanted: an argument that was not written yet.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>",,)]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
