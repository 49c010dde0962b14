// Wanted: a method of a service that does not say where its locks are.
use fenced::prelude::*;

struct Inventory;

impl Inventory {
    #[fenced(lock = "/locks/<sku>")]
    async fn reserve(&self, guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError> {
        Ok(guard.token().get())
    }
}

fn main() {}
