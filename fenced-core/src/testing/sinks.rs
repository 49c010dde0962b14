use std::fmt::Debug;

use async_trait::async_trait;

use crate::FencingSink;

/// A sink that [`sink_conformance!`](crate::sink_conformance) runs against.
///
/// Each resource has a counter, zero at first, that is changed through the sink and read beside it.
#[async_trait]
pub trait SinkUnderTest: Send + Sync {
    /// The sink.
    type Sink: FencingSink<Answer: Clone + Debug + PartialEq>;

    /// The sink.
    fn sink(&self) -> &Self::Sink;

    /// A write that adds to the counter of `resource`.
    fn add(&self, resource: &str, amount: i64) -> <Self::Sink as FencingSink>::Write;

    /// A write that sets the counter of `resource`.
    fn set(&self, resource: &str, value: i64) -> <Self::Sink as FencingSink>::Write;

    /// The counter of `resource`, as anyone can read it.
    async fn value(&self, resource: &str) -> i64;
}

/// Writes a test for each rule that a sink has to keep.
///
/// The argument is an expression that evaluates, for each test anew, to a future of a
/// [`SinkUnderTest`](crate::testing::SinkUnderTest) that has seen nothing.
///
/// ```
/// use fenced_core::testing::SinkUnderTest;
/// use fenced_core::{MemorySink, MemoryWrite};
///
/// struct Memory(MemorySink);
///
/// #[async_trait::async_trait]
/// impl SinkUnderTest for Memory {
///     type Sink = MemorySink;
///
///     fn sink(&self) -> &MemorySink { &self.0 }
///     fn add(&self, resource: &str, amount: i64) -> MemoryWrite { MemoryWrite::add(resource, amount) }
///     fn set(&self, resource: &str, value: i64) -> MemoryWrite { MemoryWrite::set(resource, value) }
///     async fn value(&self, resource: &str) -> i64 { self.0.get(resource) }
/// }
///
/// fenced_core::sink_conformance!(async { Memory(MemorySink::new()) });
/// ```
#[macro_export]
macro_rules! sink_conformance {
    ($setup:expr) => {
        $crate::__conformance!(sink_cases, $setup, [
            a_newer_claim_makes_older_holders_stale
            a_refused_request_is_free_for_a_newer_holder
            a_fence_outlives_a_pause
            a_newer_write_makes_older_holders_stale
            a_holder_writes_as_often_as_it_likes
            one_holder_writes_in_parallel
            a_claim_ends_writes_in_flight
            nothing_lands_between_a_claim_and_a_read
            a_repeated_request_is_replayed
            a_newer_holder_gets_the_stored_answer
            an_id_with_another_digest_is_a_mismatch
            a_bad_request_is_refused
            twins_have_one_effect
            a_stale_repetition_is_stale
            the_outcome_is_told_to_anyone
            a_cancelled_write_happens_wholly_or_not_at_all
            a_cancelled_claim_harms_nobody
            tokens_are_compared_over_their_whole_range
            resources_are_apart
            odd_names_are_distinct
        ]);
    };
}
