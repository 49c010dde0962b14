// Wanted: a lock for each warehouse, which is no parameter.
use fenced::prelude::*;

#[fenced(lock = "/locks/<warehouse>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str, lot: u8) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
