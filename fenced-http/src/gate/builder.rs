use std::fmt;
use std::time::Duration;

use fenced_core::{BoxError, FencingToken};

use crate::gate::bounds::Bounds;
use crate::gate::ledger::Ledger;
use crate::{Gate, GateStore};

/// Options of a [`Gate`].
#[must_use = "nothing is open yet"]
pub struct GateBuilder {
    bounds: Bounds,
    floor: Option<FencingToken>,
}

impl Default for GateBuilder {
    fn default() -> Self {
        let bounds = Bounds {
            max_step: Gate::MAX_STEP,
            busy_timeout: Gate::BUSY_TIMEOUT,
            max_resources: Gate::MAX_RESOURCES,
            max_answer_bytes: Gate::MAX_ANSWER_BYTES,
            keep: Gate::KEEP,
        };
        Self {
            bounds,
            floor: None,
        }
    }
}

impl GateBuilder {
    /// Refuses, as [`Implausible`](fenced_core::SinkError::Implausible), a token that is further
    /// ahead of the newest one of all resources than this, so that a forged one cannot lock
    /// everybody out. `u64::MAX` is no bound.
    pub fn max_step(mut self, tokens: u64) -> Self {
        self.bounds.max_step = tokens;
        self
    }

    /// How long a newer holder waits for the requests of older ones that are under way, before it
    /// is [`Busy`](fenced_core::SinkError::Busy).
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.bounds.busy_timeout = timeout;
        self
    }

    /// How many resources are known at once; [`Gate::collect`] makes room.
    pub fn max_resources(mut self, resources: usize) -> Self {
        self.bounds.max_resources = resources;
        self
    }

    /// How many bytes of answers are kept at once; until there is room, requests with an id are
    /// refused.
    pub fn max_answer_bytes(mut self, bytes: usize) -> Self {
        self.bounds.max_answer_bytes = bytes;
        self
    }

    /// How long an answer is kept at least: longer than anybody repeats a request.
    pub fn keep(mut self, time: Duration) -> Self {
        self.bounds.keep = time;
        self
    }

    /// Refuses smaller tokens at resources of which nothing is known. A gate without a store wants
    /// one that is not smaller than any token it has seen before it was started.
    pub fn floor(mut self, floor: FencingToken) -> Self {
        self.floor = Some(floor);
        self
    }

    /// A gate that remembers what `store` does.
    ///
    /// # Errors
    /// Those of [`GateStore::load`].
    pub async fn open(self, store: impl GateStore + 'static) -> Result<Gate, BoxError> {
        let ledger = Ledger::of(store.load().await?);
        Ok(self.gate(ledger, Some(Box::new(store))))
    }

    /// A gate that forgets everything when its process ends: a holder that is late may be let in
    /// by the next one, unless that has a [`floor`](Self::floor).
    pub fn in_memory(self) -> Gate {
        self.gate(Ledger::default(), None)
    }

    fn gate(self, mut ledger: Ledger, store: Option<Box<dyn GateStore>>) -> Gate {
        let floor = self.floor.map_or(0, FencingToken::get);
        ledger.floor = ledger.floor.max(floor);
        Gate::new(ledger, store, self.bounds)
    }
}

impl fmt::Debug for GateBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateBuilder")
            .field("bounds", &self.bounds)
            .field("floor", &self.floor)
            .finish()
    }
}
