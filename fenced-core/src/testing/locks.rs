use async_trait::async_trait;

use crate::{LockPath, LockService};

/// A lock service that [`lock_conformance!`](crate::lock_conformance) runs against.
#[async_trait]
pub trait LocksUnderTest: Send + Sync {
    /// A lock service on the same locks, as another process would have it.
    async fn open(&self) -> Box<dyn LockService>;

    /// How many contenders stand in the service for `path`, the holder among them.
    async fn contenders(&self, path: &LockPath) -> usize;

    /// Removes the holder of `path` from outside, as an administrator would.
    async fn take_away(&self, path: &LockPath);
}

/// Writes a test for each rule that a lock service has to keep.
///
/// The argument is an expression that evaluates, for each test anew, to a future of a
/// [`LocksUnderTest`](crate::testing::LocksUnderTest) on which nothing is locked.
///
/// ```
/// use fenced_core::testing::LocksUnderTest;
/// use fenced_core::{LockPath, LockService, LossReason, MemoryLocks};
///
/// struct Memory(MemoryLocks);
///
/// #[async_trait::async_trait]
/// impl LocksUnderTest for Memory {
///     async fn open(&self) -> Box<dyn LockService> {
///         Box::new(self.0.clone())
///     }
///     async fn contenders(&self, path: &LockPath) -> usize {
///         usize::from(self.0.token(path.as_str()).is_some()) + self.0.waiters(path.as_str())
///     }
///     async fn take_away(&self, path: &LockPath) {
///         self.0.lose(path.as_str(), LossReason::NodeDeleted);
///     }
/// }
///
/// fenced_core::lock_conformance!(async { Memory(MemoryLocks::new()) });
/// ```
#[macro_export]
macro_rules! lock_conformance {
    ($setup:expr) => {
        $crate::__conformance!(lock_cases, $setup, [
            a_grant_has_a_token_and_leaves_nothing
            a_second_contender_waits
            tokens_grow_with_every_grant
            first_come_first_served
            a_timeout_is_exact_and_leaves_nothing
            a_zero_timeout_asks_once
            a_cancelled_acquire_leaves_nothing
            a_dropped_lease_is_freed
            a_cancelled_release_is_finished
            a_panic_frees_the_lock
            a_lock_taken_away_is_lost
            paths_are_apart
            odd_paths_are_distinct
            nobody_meets_inside
        ]);
    };
}
