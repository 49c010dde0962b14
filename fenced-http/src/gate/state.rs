use std::collections::HashMap;
use std::sync::Arc;

use fenced_core::{Fence, FencingToken, Request, SinkError};
use tokio::sync::RwLock;

use crate::gate::bounds::{Bounds, Full};
use crate::gate::ledger::{Ledger, Requests};
use crate::gate::seen::{Seen, Standing};

/// A resource: whoever reads holds its fence, whoever writes has waited for all who held it.
pub(crate) type Resource = Arc<RwLock<Seen>>;

/// What a gate has in memory.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) resources: HashMap<String, Resource>,
    pub(crate) requests: Requests,
    /// Stands in for the resources that were collected.
    pub(crate) floor: i64,
    /// The newest token of any resource.
    pub(crate) newest: i64,
}

/// The largest token that is believed where nothing at all was seen: the czxid of an ensemble's
/// millionth epoch.
const FIRST: i64 = 1 << 52;

impl State {
    pub(crate) fn of(mut ledger: Ledger) -> Self {
        let newest = ledger.fences.values().map(|seen| seen.newest());
        let newest = newest.max().unwrap_or(0).max(ledger.floor);
        if newest > 0 {
            // What was under way when the last process died may have had its effect.
            ledger.requests.knows_only_from(newest.saturating_add(1));
        }
        Self {
            newest,
            floor: ledger.floor,
            requests: ledger.requests,
            resources: ledger
                .fences
                .into_iter()
                .map(|(name, seen)| (name, Arc::new(RwLock::new(seen))))
                .collect(),
        }
    }

    /// The resource of a fence. One that is new is only remembered for a holder that may raise its
    /// fence.
    pub(crate) fn resource(
        &mut self,
        fence: &Fence,
        bounds: &Bounds,
    ) -> Result<Resource, SinkError> {
        if let Some(resource) = self.resources.get(&fence.resource) {
            return Ok(Arc::clone(resource));
        }
        let Standing::Newer = Seen::default().compare(fence, self.floor)? else {
            unreachable!("nothing was raised to a token above zero")
        };
        self.may_raise(Seen::default(), fence, bounds)?;
        if self.resources.len() >= bounds.max_resources {
            return Err(SinkError::Retry(
                Full::Resources(self.resources.len()).into(),
            ));
        }
        let resource = Resource::default();
        self.resources
            .insert(fence.resource.clone(), Arc::clone(&resource));
        Ok(resource)
    }

    /// Refuses a holder whose claim was lost, and a token that is too far ahead to be true.
    pub(crate) fn may_raise(
        &self,
        seen: Seen,
        fence: &Fence,
        bounds: &Bounds,
    ) -> Result<(), SinkError> {
        if fence.claimed {
            return Err(SinkError::NotClaimed {
                resource: fence.resource.clone(),
            });
        }
        let known = seen.newest().max(self.newest).max(self.floor);
        let mine = fence.token;
        let is_plausible = bounds.max_step == u64::MAX
            || match known {
                0 => mine.get() <= FIRST,
                _ => mine.get().abs_diff(known) <= bounds.max_step || mine.get() < known,
            };
        if is_plausible {
            return Ok(());
        }
        let current = FencingToken::try_from(known).ok();
        tracing::warn!(resource = %fence.resource, %mine, ?current, "an implausible token was refused");
        Err(SinkError::Implausible { mine, current })
    }

    /// The stored answer to a request, if there is one.
    pub(crate) fn applied(
        &self,
        request: &Request,
    ) -> Result<Option<fenced_core::Answer>, SinkError> {
        match self.requests.get(request.id()) {
            None => Ok(None),
            Some(applied) if applied.digest != *request.digest()? => Err(request.mismatch()),
            Some(applied) => Ok(Some(applied.answer.clone())),
        }
    }
}
