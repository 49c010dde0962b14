// Wanted: to use the guard in a function that has none.
use fenced::prelude::*;

async fn helper() -> i64 {
    guard.token().get()
}

#[fenced(lock = "/locks/stock")]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    let _ = guard.token();
    Ok(helper().await)
}

fn main() {}
