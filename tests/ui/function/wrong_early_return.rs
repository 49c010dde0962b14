// Wanted: to return a text as the error.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    if sku.is_empty() {
        return "no sku";
    }
    Ok(guard.token().get())
}

fn main() {}
