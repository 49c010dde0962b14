// Wanted: to keep the guard for the next call.
use fenced::prelude::*;
use std::sync::Mutex;

struct Inventory {
    parked: Mutex<Option<FencedGuard<'static>>>,
}

impl Inventory {
    #[fenced(lock = "/locks/<sku>", service = fenced::MemoryLocks::new())]
    async fn reserve(&self, guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
        *self.parked.lock().unwrap() = Some(guard);
        Ok(0)
    }
}

fn main() {}
