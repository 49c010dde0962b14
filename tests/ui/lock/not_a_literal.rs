// Wanted: a path that is computed.
use fenced::prelude::*;

#[fenced(lock = format!("/locks/{sku}"))]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
