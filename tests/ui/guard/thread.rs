// Wanted: to compute on a thread that is not waited for.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
    std::thread::spawn(move || drop(guard));
    Ok(0)
}

fn main() {}
