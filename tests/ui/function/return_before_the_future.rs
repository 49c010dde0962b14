// Wanted: to skip the lock for some arguments, in a function that returns its future.
use std::pin::Pin;

use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
fn reserve(
    guard: FencedGuard<'_>,
    sku: Option<String>,
) -> Pin<Box<dyn Future<Output = Result<i64, LockError>>>> {
    let Some(sku) = sku else {
        return Box::pin(async { Ok(0) });
    };
    Box::pin(async move {
        let _ = sku;
        Ok(guard.token().get())
    })
}

fn main() {}
