// Wanted: a future of a plain number.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock")]
fn reserve(guard: FencedGuard<'_>) -> impl Future<Output = i64> {
    async move { guard.token().get() }
}

fn main() {}
