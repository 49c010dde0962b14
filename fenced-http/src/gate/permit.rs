use std::fmt;

use fenced_core::{Fence, Request};
use tokio::sync::OwnedRwLockReadGuard;

use crate::Gate;
use crate::gate::seen::Seen;
use crate::in_flight::Ticket;

/// What holds a fence of a [`Gate`].
#[must_use = "a permit that is dropped gives the fence up"]
pub struct GatePermit {
    gate: Gate,
    seen: OwnedRwLockReadGuard<Seen>,
    fence: Fence,
    request: Option<(Request, Ticket)>,
    is_settled: bool,
}

impl GatePermit {
    pub(crate) fn new(
        gate: Gate,
        seen: OwnedRwLockReadGuard<Seen>,
        fence: Fence,
        request: Option<(Request, Ticket)>,
    ) -> Self {
        Self {
            gate,
            seen,
            fence,
            request,
            is_settled: false,
        }
    }

    /// The fence.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    pub(crate) fn request(&self) -> Option<&Request> {
        self.request.as_ref().map(|(request, _)| request)
    }

    /// Gives the fence up, now that it is known whether the request had an effect.
    pub(crate) fn settle(mut self) {
        self.is_settled = true;
    }
}

impl Drop for GatePermit {
    fn drop(&mut self) {
        // Before the fence is free: nobody is to be told that the request had no effect.
        if !self.is_settled && self.request.is_some() {
            self.gate.state().requests.doubt(self.fence.token);
        }
    }
}

impl fmt::Debug for GatePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatePermit")
            .field("fence", &self.fence)
            .field("seen", &*self.seen)
            .finish_non_exhaustive()
    }
}
