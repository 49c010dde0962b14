// Wanted: a lock for each order's SKU.
use fenced::prelude::*;

struct Order {
    sku: String,
}

#[fenced(lock = "/locks/<order.skuu>")]
async fn reserve(guard: FencedGuard<'_>, order: &Order) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
