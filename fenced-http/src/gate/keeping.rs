//! What an operator does with a gate.

use std::sync::Arc;

use fenced_core::{FencingToken, SinkError};

use crate::gate::bounds::now;
use crate::gate::seen::Seen;
use crate::{Gate, GateEntry, resource};

/// How much was collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GateCollected {
    /// Fences.
    pub fences: u64,
    /// Requests with their answers.
    pub requests: u64,
}

impl Gate {
    /// The newest token that `resource` has seen.
    ///
    /// # Errors
    /// [`SinkError::Busy`] while a newer holder waits for older ones.
    pub async fn current(&self, resource: &str) -> Result<Option<FencingToken>, SinkError> {
        let known = self.state().resources.get(resource).cloned();
        let Some(known) = known else { return Ok(None) };
        let seen = self.within(resource, known.read_owned()).await?;
        Ok(FencingToken::try_from(seen.newest()).ok())
    }

    /// Forgets the fences and requests of tokens below `floor`, and remembers the floor in their
    /// place, so that an older holder stays refused.
    ///
    /// Choose a floor that is older than every holder that may still run, and than every request
    /// that may still be repeated: a holder below it is stale, and a request below it would be
    /// applied again.
    ///
    /// # Errors
    /// [`SinkError::Backend`] if the store fails.
    pub async fn collect(&self, floor: FencingToken) -> Result<GateCollected, SinkError> {
        self.keep(GateEntry::Collected { floor }).await?;
        let mut state = self.state();
        state.floor = state.floor.max(floor.get());
        state.newest = state.newest.max(floor.get());
        let before = state.resources.len();
        state.resources.retain(|_, resource| {
            // Nobody else can reach it, once nobody else has it.
            let is_free = Arc::strong_count(resource) == 1;
            let is_old = |seen: &Seen| seen.newest() < floor.get();
            !(is_free && resource.try_read().is_ok_and(|seen| is_old(&seen)))
        });
        Ok(GateCollected {
            fences: (before - state.resources.len()) as u64,
            requests: state.requests.collect(floor),
        })
    }

    /// Sets the fence of `resource` by hand, up or down: after the lock service lost its data, or
    /// a forged token was let in. The store keeps who was lowered when, and why.
    ///
    /// A holder between the two tokens that still runs is let in, or shut out: make sure that there
    /// is none.
    ///
    /// # Errors
    /// [`SinkError::Busy`] while requests are under way there; [`SinkError::Backend`] if the store
    /// fails, or the resource cannot have this name.
    pub async fn reset(
        &self,
        resource: &str,
        token: FencingToken,
        reason: &str,
    ) -> Result<(), SinkError> {
        resource::check(resource).map_err(SinkError::backend)?;
        let known = self
            .state()
            .resources
            .entry(resource.to_owned())
            .or_default()
            .clone();
        let mut seen = self.within(resource, known.clone().write_owned()).await?;
        tracing::warn!(resource, %token, old = seen.newest(), reason, "a fence is reset");
        self.keep(GateEntry::Reset {
            resource: resource.to_owned(),
            token,
            reason: reason.to_owned(),
            at: now(),
        })
        .await?;
        *seen = Seen {
            exclusive: token.get(),
            shared: 0,
        };
        drop(seen);
        self.recount();
        Ok(())
    }

    /// The newest token of all resources, after one was lowered. Those that are being raised count
    /// themselves.
    fn recount(&self) {
        let mut state = self.state();
        let seen = state.resources.values().filter_map(|resource| {
            let seen = resource.try_read().ok()?;
            Some(seen.newest())
        });
        let newest = seen.max().unwrap_or(0);
        state.newest = newest.max(state.floor);
    }
}
