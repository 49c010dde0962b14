//! What a section costs beside its round trips: bytes of the future, time of a poll, time of an
//! empty section in memory.
//!
//! `cargo bench -p fenced-tests --bench section`

use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use fenced::MemoryLocks;
use fenced::prelude::*;
use tokio::runtime::Runtime;

fn main() {
    sizes();
    divan::main();
}

macro_rules! shape {
    ($plain:ident, $fenced:ident, $bytes:literal) => {
        async fn $plain() -> Result<usize, LockError> {
            let buffer = black_box([0_u8; $bytes]);
            tokio::task::yield_now().await;
            Ok(black_box(&buffer).len())
        }

        #[fenced(lock = "/size")]
        async fn $fenced(guard: FencedGuard<'_>) -> Result<usize, LockError> {
            let buffer = black_box([0_u8; $bytes]);
            tokio::task::yield_now().await;
            black_box(&guard);
            Ok(black_box(&buffer).len())
        }
    };
}
shape!(plain_16, fenced_16, 16);
shape!(plain_1k, fenced_1k, 1024);
shape!(plain_8k, fenced_8k, 8192);

#[allow(clippy::large_types_passed_by_value, reason = "what is measured")]
async fn plain_argument(argument: [u8; 1024]) -> Result<usize, LockError> {
    tokio::task::yield_now().await;
    Ok(black_box(&argument).len())
}

#[fenced(lock = "/size")]
#[allow(clippy::large_types_passed_by_value, reason = "what is measured")]
async fn fenced_argument(guard: FencedGuard<'_>, argument: [u8; 1024]) -> Result<usize, LockError> {
    tokio::task::yield_now().await;
    black_box(&guard);
    Ok(black_box(&argument).len())
}

fn sizes() {
    println!("bytes of a future                 plain  fenced    more");
    let row = |name: &str, plain: usize, fenced: usize| {
        println!("{name:<32}{plain:>7}{fenced:>8}{:>8}", fenced - plain);
    };
    row(
        "a body of 16 bytes",
        size_of_val(&plain_16()),
        size_of_val(&fenced_16()),
    );
    row(
        "a body of 1 KiB",
        size_of_val(&plain_1k()),
        size_of_val(&fenced_1k()),
    );
    row(
        "a body of 8 KiB",
        size_of_val(&plain_8k()),
        size_of_val(&fenced_8k()),
    );
    let (plain, fenced) = (plain_argument([0; 1024]), fenced_argument([0; 1024]));
    row(
        "an argument of 1 KiB, by value",
        size_of_val(&plain),
        size_of_val(&fenced),
    );
    println!();
}

/// Pending as often as it is polled.
async fn forever() {
    poll_fn(|_| Poll::<()>::Pending).await;
}

#[fenced(lock = "/poll", service = locks)]
async fn fenced_forever(locks: &MemoryLocks, guard: FencedGuard<'_>) -> Result<(), LockError> {
    forever().await;
    drop(guard);
    Ok(())
}

fn poll(future: &mut Pin<Box<impl Future>>) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

mod one_poll {
    use divan::Bencher;
    use fenced::MemoryLocks;

    use super::{fenced_forever, forever, poll, runtime};

    #[divan::bench]
    fn of_a_plain_future(bencher: Bencher<'_, '_>) {
        let mut future = Box::pin(forever());
        bencher.bench_local(|| poll(&mut future));
    }

    #[divan::bench]
    fn of_a_section(bencher: Bencher<'_, '_>) {
        let (runtime, locks) = (runtime(), MemoryLocks::new());
        let _entered = runtime.enter();
        let mut future = Box::pin(fenced_forever(&locks));
        poll(&mut future); // takes the lock
        bencher.bench_local(|| poll(&mut future));
    }

    /// What each poll of a section asks, to see a deadline that passed while the process was away.
    #[divan::bench]
    fn of_the_clock() -> std::time::Instant {
        std::time::Instant::now()
    }
}

mod one_section {
    use std::time::Duration;

    use divan::Bencher;
    use fenced::prelude::*;
    use fenced::{LockPath, LockRequest, MemoryLocks, section};

    use super::runtime;

    #[fenced(lock = "/empty", service = locks)]
    async fn empty(locks: &MemoryLocks, guard: FencedGuard<'_>) -> Result<i64, LockError> {
        Ok(guard.token().get())
    }

    #[divan::bench]
    fn by_the_attribute(bencher: Bencher<'_, '_>) {
        let (runtime, locks) = (runtime(), MemoryLocks::new());
        bencher.bench_local(|| runtime.block_on(empty(&locks)));
    }

    #[divan::bench]
    fn by_hand(bencher: Bencher<'_, '_>) {
        let (runtime, locks) = (runtime(), MemoryLocks::new());
        bencher.bench_local(|| {
            runtime.block_on(section(&locks, "/empty").run(async |guard| guard.token().get()))
        });
    }

    /// The lock service alone: what of the above is not the section's.
    #[divan::bench]
    fn without_a_section(bencher: Bencher<'_, '_>) {
        let (runtime, locks) = (runtime(), MemoryLocks::new());
        bencher.bench_local(|| {
            runtime.block_on(async {
                let path = LockPath::new("/empty")?;
                let request = LockRequest::new(&path, Duration::from_secs(1));
                locks.acquire(request).await?.release().await
            })
        });
    }
}
