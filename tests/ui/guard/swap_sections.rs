// Wanted: to use the outer lock's guard in the inner section.
use fenced::prelude::*;
use fenced::section;

#[fenced(lock = "/locks/outer", service = locks)]
async fn reserve(locks: &fenced::MemoryLocks, mut guard: FencedGuard<'_>) -> Result<(), LockError> {
    let outer = &mut guard;
    section(locks, "/locks/inner")
        .run(async move |mut inner| std::mem::swap(outer, &mut inner))
        .await
}

fn main() {}
