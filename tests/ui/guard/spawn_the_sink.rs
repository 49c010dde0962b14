// Wanted: to go on using the fenced sink in a task.
use fenced::MemorySink;
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(
    guard: FencedGuard<'_>,
    sku: &str,
    stock: &'static MemorySink,
) -> Result<i64, LockError> {
    let stock = guard.fence(stock);
    in_background(async move { drop(stock.claim().await) });
    Ok(0)
}

fn in_background(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

fn main() {}
