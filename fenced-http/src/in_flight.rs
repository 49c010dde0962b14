use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The ids of the requests that are being worked on.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight(Arc<Mutex<HashSet<String>>>);

/// One of them; dropping it says that the work has ended.
#[derive(Debug)]
pub(crate) struct Ticket {
    all: InFlight,
    id: String,
}

impl InFlight {
    /// None if somebody is working on it already.
    pub(crate) fn enter(&self, id: &str) -> Option<Ticket> {
        let is_first = self.ids().insert(id.to_owned());
        is_first.then(|| Ticket {
            all: self.clone(),
            id: id.to_owned(),
        })
    }

    fn ids(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.all.ids().remove(&self.id);
    }
}
