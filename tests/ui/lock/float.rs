// Wanted: a lock for each price.
use fenced::prelude::*;

#[fenced(lock = "/locks/<price>")]
async fn reserve(guard: FencedGuard<'_>, price: f64) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
