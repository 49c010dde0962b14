// Wanted: to lock with the database.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", service = stock)]
async fn reserve(guard: FencedGuard<'_>, stock: &fenced::MemorySink) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn main() {}
