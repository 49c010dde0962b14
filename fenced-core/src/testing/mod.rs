//! Conformance suites: what every lock service and every sink must show, run against yours.
//!
//! Implement [`LocksUnderTest`] or [`SinkUnderTest`] and write
//! [`lock_conformance!`](crate::lock_conformance) or [`sink_conformance!`](crate::sink_conformance)
//! in a test file; each rule becomes a test of its own.

mod cancel;
#[doc(hidden)]
pub mod lock_cases;
mod locks;
#[doc(hidden)]
pub mod sink_cases;
mod sinks;

use std::future::Future;

pub use cancel::{CancelledAt, cancel_after};
pub use locks::LocksUnderTest;
pub use sinks::SinkUnderTest;

/// Runs a test on a runtime with two workers.
///
/// # Panics
/// If no runtime can be had, or the test panics.
pub fn run<F: Future>(test: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime for the test")
        .block_on(test)
}

/// One `#[test]` for each rule of `$suite`.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance {
    ($suite:ident, $setup:expr, [$($rule:ident)*]) => {$(
        #[test]
        fn $rule() {
            $crate::testing::run(async {
                let subject = $setup.await;
                $crate::testing::$suite::$rule(&subject).await;
            });
        }
    )*};
}
