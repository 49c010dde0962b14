// Wanted: to let the body finish, as a word.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", on_lost = finish)]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
