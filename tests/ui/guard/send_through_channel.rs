// Wanted: to pass the guard to whoever listens.
use fenced::prelude::*;
use tokio::sync::mpsc::UnboundedSender;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(
    guard: FencedGuard<'_>,
    sku: &str,
    to: UnboundedSender<FencedGuard<'static>>,
) -> Result<i64, LockError> {
    let _ = to.send(guard);
    Ok(0)
}

fn main() {}
