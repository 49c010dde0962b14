// Wanted: a write before the future that is returned.
use std::future::Future;

use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
fn reserve(
    guard: FencedGuard<'_>,
    sku: String,
    stock: &mut Vec<String>,
) -> impl Future<Output = Result<i64, LockError>> {
    stock.push(sku.clone());
    async move {
        let _ = sku;
        Ok(guard.token().get())
    }
}

fn main() {}
