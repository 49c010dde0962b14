// Wanted: a tab in a path.
use fenced::prelude::*;

#[fenced(lock = "/locks/a\tb/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
