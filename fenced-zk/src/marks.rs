use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fenced_core::{FencingToken, LockPath};

/// The newest tokens that this process knows of. Whatever is created later is newer, unless the
/// ensemble has lost its data.
#[derive(Default)]
pub(crate) struct Marks {
    /// Transaction ids are the ensemble's, so a grant says something of all locks.
    granted: AtomicI64,
    /// What resources have answered to stale holders.
    seen: Mutex<HashMap<LockPath, FencingToken>>,
}

/// Of how many locks it is remembered what a resource answered.
const REMEMBERED: usize = 1_024;

impl Marks {
    pub(crate) fn granted(&self, token: FencingToken) {
        self.granted.fetch_max(token.get(), Ordering::AcqRel);
    }

    /// A resource has refused a holder of this lock, having seen that token.
    pub(crate) fn refused(&self, path: &LockPath, newer: FencingToken) {
        let mut seen = self.seen();
        if seen.len() < REMEMBERED || seen.contains_key(path) {
            let newest = seen.entry(path.clone()).or_insert(newer);
            *newest = newer.max(*newest);
        }
    }

    /// The token of a node that is created from now on is above this.
    pub(crate) fn floor(&self, path: &LockPath) -> Option<FencingToken> {
        let seen = self.seen().get(path).copied();
        let granted = FencingToken::try_from(self.granted.load(Ordering::Acquire));
        seen.max(granted.ok())
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<LockPath, FencingToken>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
