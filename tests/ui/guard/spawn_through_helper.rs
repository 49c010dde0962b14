// Wanted: to hand the guard to a helper that spawns.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    let task = async move { drop(guard) };
    in_background(task);
    Ok(0)
}

fn in_background(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

fn main() {}
