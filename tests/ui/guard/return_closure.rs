// Wanted: to let the caller use the guard through a closure.
use fenced::prelude::*;

struct Later(Box<dyn FnOnce()>);

#[fenced(lock = "/locks/<sku>")]
async fn reserve(guard: FencedGuard<'_>, sku: &str) -> Result<Later, LockError> {
    Ok(Later(Box::new(move || drop(guard))))
}

fn main() {}
