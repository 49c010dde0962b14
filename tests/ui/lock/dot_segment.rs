// Wanted: a path beside another one.
use fenced::prelude::*;

#[fenced(lock = "/locks/../<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
