// Wanted: a section that cannot fail.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> i64 {
    guard.token().get()
}

fn main() {}
