// Wanted: to have every implementation of a trait take the lock.
use fenced::prelude::*;

trait Reserve {
    #[fenced(lock = "/locks/<sku>")]
    async fn reserve(&self, guard: FencedGuard<'_>, sku: &str) -> Result<i64, LockError>;
}

fn main() {}
