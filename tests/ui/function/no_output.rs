// Wanted: a section that returns nothing.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) {
    drop(guard);
}

fn main() {}
