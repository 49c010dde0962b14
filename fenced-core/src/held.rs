use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::state::LeaseState;
use crate::{LockPath, ServiceId};

thread_local! {
    /// The leases of the sections that the running code is inside of, outermost first.
    static HELD: RefCell<Vec<Arc<LeaseState>>> = const { RefCell::new(Vec::new()) };
}

/// The lease of the section of `path` that the running code is inside of, if it still holds it.
pub(crate) fn find(service: ServiceId, path: &LockPath) -> Option<Arc<LeaseState>> {
    HELD.with_borrow(|held| {
        held.iter()
            .rev()
            .find(|state| {
                state.service() == Some(service) && state.path() == path && !state.is_released()
            })
            .cloned()
    })
}

pin_project! {
    /// A body, inside of which the lease of its section can be found.
    #[must_use = "futures do nothing unless polled"]
    pub(crate) struct Inside<'a, B> {
        lease: &'a Arc<LeaseState>,
        #[pin]
        body: B,
    }
}

impl<'a, B> Inside<'a, B> {
    pub(crate) fn new(lease: &'a Arc<LeaseState>, body: B) -> Self {
        Self { lease, body }
    }
}

impl<B: Future> Future for Inside<'_, B> {
    type Output = B::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        let this = self.project();
        let _entered = Entered::new(this.lease);
        this.body.poll(cx)
    }
}

/// Takes its entry off again, also when the body panics.
struct Entered;

impl Entered {
    fn new(state: &Arc<LeaseState>) -> Self {
        HELD.with_borrow_mut(|held| held.push(Arc::clone(state)));
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let left = HELD.with_borrow_mut(Vec::pop);
        // Only now: the last owner of a lease may run a lock service's code.
        drop(left);
    }
}
