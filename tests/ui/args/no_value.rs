// Wanted: the default timeout, spelt out.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", timeout)]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
