// Wanted: to take the lock from where the guard came from.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock", service = locks_of(&guard))]
async fn reserve(guard: FencedGuard<'_>) -> Result<i64, LockError> {
    Ok(guard.token().get())
}

fn locks_of(_: &FencedGuard<'_>) -> fenced::MemoryLocks {
    fenced::MemoryLocks::new()
}

fn main() {}
