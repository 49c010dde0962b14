// Wanted: a timeout from the configuration, which is a number.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", timeout = seconds)]
async fn reserve(guard: FencedGuard<'_>, seconds: u64) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
