// Wanted: an `Rc` in a body that runs on a runtime of several threads.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    let shared = std::rc::Rc::new(guard.token().get());
    tokio::task::yield_now().await;
    Ok(*shared)
}

fn needs_send(_: impl Send) {}

fn serve() {
    needs_send(reserve("4711"));
}

fn main() {}
