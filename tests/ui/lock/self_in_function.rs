// Wanted: a lock for each shop, in a function without `self`.
use fenced::prelude::*;

#[fenced(lock = "/locks/<self.shop>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
