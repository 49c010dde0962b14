// Wanted: a path that looks like a contender's node.
use fenced::prelude::*;

#[fenced(lock = "/locks/lock-0000000001/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
