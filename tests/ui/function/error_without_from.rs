// Wanted: to report a parse error only.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, std::num::ParseIntError> {
    Ok(guard.token().get())
}

fn main() {}
