use std::cell::RefCell;
use std::sync::Arc;

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

/// While it lives, the running code is inside of a section.
///
/// Takes its entry off again, also when a body panics.
#[must_use = "the section is left when this is dropped"]
pub(crate) struct Inside;

impl Inside {
    pub(crate) fn of(lease: &Arc<LeaseState>) -> Self {
        HELD.with_borrow_mut(|held| held.push(Arc::clone(lease)));
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let left = HELD.with_borrow_mut(Vec::pop);
        // Only now: the last owner of a lease may run a lock service's code.
        drop(left);
    }
}
