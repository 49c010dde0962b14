// Wanted: a lock for nothing in particular.
use fenced::prelude::*;

#[fenced(lock = "/locks/<nothing>")]
async fn reserve(guard: FencedGuard<'_>, nothing: ()) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
