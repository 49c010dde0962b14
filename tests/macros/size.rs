//! What a section adds to a future.
#![deny(warnings, clippy::all, clippy::pedantic)]

use std::hint::black_box;

use fenced::MemoryLocks;
use fenced::prelude::*;

/// What a section may add, by-value arguments apart.
const LIMIT: usize = 256;

macro_rules! shape {
    ($plain:ident, $fenced:ident, $bytes:literal) => {
        async fn $plain() -> Result<usize, LockError> {
            let buffer = black_box([0_u8; $bytes]);
            tokio::task::yield_now().await;
            Ok(black_box(&buffer).len())
        }

        #[fenced(lock = "/size", hold = "1s", on_lost = "finish", reentrant)]
        async fn $fenced(guard: FencedGuard<'_>) -> Result<usize, LockError> {
            let buffer = black_box([0_u8; $bytes]);
            tokio::task::yield_now().await;
            black_box(&guard);
            Ok(black_box(&buffer).len())
        }
    };
}
shape!(plain_1, fenced_1, 1);
shape!(plain_64, fenced_64, 64);
shape!(plain_1k, fenced_1k, 1024);
shape!(plain_8k, fenced_8k, 8192);

async fn plain_output() -> Result<[u64; 32], LockError> {
    tokio::task::yield_now().await;
    Ok(black_box([0; 32]))
}

#[fenced(lock = "/size")]
async fn fenced_output(guard: FencedGuard<'_>) -> Result<[u64; 32], LockError> {
    tokio::task::yield_now().await;
    black_box(&guard);
    Ok(black_box([0; 32]))
}

struct Service {
    locks: MemoryLocks,
}

impl HasLocks for Service {
    fn locks(&self) -> &dyn LockService {
        &self.locks
    }
}

impl Service {
    async fn plain(&self, sku: &str) -> Result<usize, LockError> {
        tokio::task::yield_now().await;
        Ok(black_box((self, sku)).1.len())
    }

    #[fenced(lock = "/size/<sku>")]
    async fn fenced(&self, guard: FencedGuard<'_>, sku: &str) -> Result<usize, LockError> {
        tokio::task::yield_now().await;
        black_box(&guard);
        Ok(black_box((self, sku)).1.len())
    }
}

fn added<P, F>(plain: &P, fenced: &F) -> usize {
    size_of_val(fenced) - size_of_val(plain)
}

#[test]
fn a_section_adds_at_most_256_bytes() {
    for added in [
        added(&plain_1(), &fenced_1()),
        added(&plain_64(), &fenced_64()),
        added(&plain_1k(), &fenced_1k()),
        added(&plain_8k(), &fenced_8k()),
    ] {
        assert!(added <= LIMIT, "{added}");
    }
    assert_eq!(size_of::<FencedGuard<'_>>(), size_of::<usize>());
}

/// It is held while the lock is given back, in the place of the body.
#[test]
fn what_is_returned_counts_where_it_is_larger_than_the_body() {
    let added = added(&plain_output(), &fenced_output());
    assert!(added <= LIMIT + size_of::<[u64; 32]>(), "{added}");
}

#[test]
fn each_argument_is_stored_once_more_at_most() {
    let service = Service {
        locks: MemoryLocks::new(),
    };
    let arguments = size_of::<&Service>() + size_of::<&str>();
    let added = added(&service.plain("x"), &service.fenced("x"));
    assert!(added <= LIMIT + arguments, "{added}");
}
