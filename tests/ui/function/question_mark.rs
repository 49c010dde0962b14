// Wanted: to pass another error on with `?`.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    std::fs::remove_file(sku)?;
    Ok(guard.token().get())
}

fn main() {}
