// Wanted: a lock for each value of a type that has no text.
use fenced::prelude::*;

struct Sku(u32);

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &Sku) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
