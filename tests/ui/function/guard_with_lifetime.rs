// Wanted: a guard that lives as long as an argument.
use fenced::prelude::*;

#[fenced(lock = "/locks/<sku>")]
async fn reserve<'a>(guard: FencedGuard<'a>, sku: &'a str) -> Result<&'a str, LockError> {
    let _ = guard;
    Ok(sku)
}

fn main() {}
