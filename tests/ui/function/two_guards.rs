// Wanted: two locks at once.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(a: FencedGuard<'_>, b: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(a.token().get() + b.token().get())
}

fn main() {}
