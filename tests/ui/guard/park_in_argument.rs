// Wanted: to give the guard to the caller through an argument.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(
    guard: FencedGuard<'_>,
    sku: &str,
    place: &mut Option<FencedGuard<'_>>,
) -> Result<i64, LockError> {
    *place = Some(guard);
    Ok(0)
}

fn main() {}
