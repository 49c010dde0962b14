//! The suite for sinks finds each of the mistakes that people make.

use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fenced_core::testing::{self, SinkUnderTest, sink_cases as rules};
use fenced_core::{Fate, Fence, FencingSink, FencingToken, Outcome, Request, SinkError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    ComparesWithoutClaim,
    ChecksThenActs,
    ComparesAsFloat,
    StoresTheRequestFirst,
    CommitsATwinsEffect,
    LetsTheFenceExpire,
}

/// Counters as in `MemorySink`, with one mistake.
struct Mutant {
    flaw: Flaw,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    fences: HashMap<String, (FencingToken, Instant)>,
    counters: HashMap<String, i64>,
    requests: HashMap<String, ([u8; 32], i64)>,
}

struct Write {
    resource: String,
    apply: fn(i64, i64) -> i64,
    operand: i64,
}

impl Mutant {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compare(&self, state: &mut State, fence: &Fence) -> Result<(), SinkError> {
        let expired = |at: &Instant| {
            self.flaw == Flaw::LetsTheFenceExpire && at.elapsed() > Duration::from_secs(1)
        };
        let seen = state.fences.get(&fence.resource);
        match seen.filter(|(_, at)| !expired(at)) {
            Some((current, _)) if self.is_older(fence.token, *current) => Err(SinkError::Stale {
                mine: fence.token,
                current: *current,
            }),
            _ => Ok(()),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "this is the mistake")]
    fn is_older(&self, mine: FencingToken, current: FencingToken) -> bool {
        if self.flaw == Flaw::ComparesAsFloat {
            (mine.get() as f64) < (current.get() as f64)
        } else {
            mine < current
        }
    }

    fn raise(&self, state: &mut State, fence: &Fence) -> Result<(), SinkError> {
        self.compare(state, fence)?;
        let seen = (fence.token, Instant::now());
        state.fences.insert(fence.resource.clone(), seen);
        Ok(())
    }
}

fn stored(state: &State, request: &Request) -> Result<Option<i64>, SinkError> {
    let digest = request.digest()?;
    match state.requests.get(request.id()) {
        Some((stored, _)) if stored != digest => Err(request.mismatch()),
        found => Ok(found.map(|(_, answer)| *answer)),
    }
}

fn apply(state: &mut State, write: &Write) -> i64 {
    let counter = state.counters.entry(write.resource.clone()).or_default();
    *counter = (write.apply)(*counter, write.operand);
    *counter
}

#[async_trait]
impl FencingSink for Mutant {
    type Write = Write;
    type Answer = i64;

    async fn claim(&self, fence: &Fence) -> Result<(), SinkError> {
        if self.flaw == Flaw::ComparesWithoutClaim {
            return self.compare(&mut self.state(), fence);
        }
        self.raise(&mut self.state(), fence)
    }

    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        write: Write,
    ) -> Result<Outcome<i64>, SinkError> {
        let digest = *request.digest()?;
        if self.flaw == Flaw::ChecksThenActs {
            self.compare(&mut self.state(), fence)?;
            tokio::task::yield_now().await;
        }
        if self.flaw == Flaw::CommitsATwinsEffect {
            let known = stored(&self.state(), request)?;
            tokio::task::yield_now().await;
            if known.is_none() {
                let mut state = self.state();
                self.raise(&mut state, fence)?;
                let answer = apply(&mut state, &write);
                let first = *state
                    .requests
                    .entry(request.id().to_owned())
                    .or_insert((digest, answer));
                return Ok(if first.1 == answer {
                    Outcome::Applied(answer)
                } else {
                    Outcome::Replayed(first.1)
                });
            }
        }
        let mut state = self.state();
        let known = stored(&state, request)?;
        if self.flaw == Flaw::StoresTheRequestFirst && known.is_none() {
            state.requests.insert(request.id().to_owned(), (digest, 0));
        }
        if self.flaw != Flaw::ChecksThenActs {
            self.raise(&mut state, fence)?;
        }
        if let Some(answer) = known {
            return Ok(Outcome::Replayed(answer));
        }
        let answer = apply(&mut state, &write);
        let row = (digest, answer);
        state.requests.insert(request.id().to_owned(), row);
        Ok(Outcome::Applied(answer))
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<i64>, SinkError> {
        let state = self.state();
        let passed = request.fence().is_some_and(|sent| {
            let current = state.fences.get(&sent.resource);
            current.is_some_and(|(current, _)| *current > sent.token)
        });
        Ok(match stored(&state, request)? {
            Some(answer) => Fate::Applied(answer),
            None if passed => Fate::Absent,
            None => Fate::Unknown,
        })
    }
}

#[async_trait]
impl SinkUnderTest for Mutant {
    type Sink = Self;

    fn sink(&self) -> &Self {
        self
    }

    fn add(&self, resource: &str, amount: i64) -> Write {
        Write {
            resource: resource.to_owned(),
            apply: |counter, operand| counter + operand,
            operand: amount,
        }
    }

    fn set(&self, resource: &str, value: i64) -> Write {
        Write {
            resource: resource.to_owned(),
            apply: |_, operand| operand,
            operand: value,
        }
    }

    async fn value(&self, resource: &str) -> i64 {
        let state = self.state();
        state.counters.get(resource).copied().unwrap_or_default()
    }
}

/// Whether the mutant breaks the rule.
fn breaks<F: Future<Output = ()>>(flaw: Flaw, rule: impl FnOnce(&'static Mutant) -> F) -> bool {
    let state = Mutex::default();
    let mutant: &'static Mutant = Box::leak(Box::new(Mutant { flaw, state }));
    catch_unwind(AssertUnwindSafe(|| testing::run(rule(mutant)))).is_err()
}

macro_rules! found_by {
    ($($test:ident: $flaw:ident => $rule:ident;)*) => {$(
        #[test]
        fn $test() {
            assert!(breaks(Flaw::$flaw, rules::$rule), "the rule does not notice");
            assert!(!breaks(Flaw::None, rules::$rule), "the rule refuses what is right");
        }
    )*};
}

found_by! {
    a_compare_without_a_claim: ComparesWithoutClaim => a_newer_claim_makes_older_holders_stale;
    a_check_before_the_act: ChecksThenActs => a_claim_ends_writes_in_flight;
    a_numeric_compare: ComparesAsFloat => tokens_are_compared_over_their_whole_range;
    a_request_row_before_the_fence: StoresTheRequestFirst => a_refused_request_is_free_for_a_newer_holder;
    a_twin_that_commits: CommitsATwinsEffect => twins_have_one_effect;
    a_fence_that_expires: LetsTheFenceExpire => a_fence_outlives_a_pause;
}

mod without_a_flaw {
    use super::{Flaw, Mutant, Mutex};

    fenced_core::sink_conformance!(async {
        Mutant {
            flaw: Flaw::None,
            state: Mutex::default(),
        }
    });
}
