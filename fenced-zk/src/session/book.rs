//! The contenders' nodes of a session, and what proves them to be there.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use fenced_core::{LeaseControl, LossReason};

use super::Session;

#[derive(Default)]
pub(super) struct Book {
    nodes: HashMap<Arc<str>, Option<Held>>,
    /// When the last request was sent that a quorum answered.
    proven: Option<Instant>,
    /// When a lost connection is not awaited any longer.
    pub(super) given_up_at: Option<Instant>,
}

/// A node whose contender holds the lock.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) lease: LeaseControl,
    /// When the last request was sent that proved the node to be there.
    pub(crate) proven: Instant,
}

impl Session {
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A quorum has answered what was sent at `sent`.
    pub(crate) fn prove(&self, sent: Instant) {
        let mut book = self.book();
        book.proven = book.proven.max(Some(sent));
    }

    pub(crate) fn proven(&self) -> Option<Instant> {
        self.book().proven
    }

    /// The node belongs to this session from now on.
    pub(crate) fn own(&self, node: Arc<str>) {
        self.book().nodes.insert(node, None);
    }

    pub(crate) fn disown(&self, node: &str) {
        self.book().nodes.remove(node);
    }

    pub(crate) fn hold(&self, node: &Arc<str>, held: Held) {
        self.book().nodes.insert(Arc::clone(node), Some(held));
        self.first_held.notify_one();
    }

    /// The nodes of the session, held and waiting.
    pub(crate) fn nodes(&self) -> Vec<Arc<str>> {
        self.book().nodes.keys().cloned().collect()
    }

    pub(crate) fn held(&self) -> HashMap<Arc<str>, Held> {
        let held =
            |(node, held): (&Arc<str>, &Option<Held>)| Some((Arc::clone(node), held.clone()?));
        self.book().nodes.iter().filter_map(held).collect()
    }

    /// The least recent proof of a held node.
    pub(crate) fn oldest_proof(&self) -> Option<Instant> {
        let book = self.book();
        book.nodes.values().flatten().map(|held| held.proven).min()
    }

    /// The held node was there when what was sent at `sent` reached the server.
    pub(crate) fn renew(&self, node: &str, sent: Instant) {
        if let Some(Some(held)) = self.book().nodes.get_mut(node) {
            held.proven = held.proven.max(sent);
            held.lease.extend(sent + self.lease_span());
        }
    }

    /// The node is not there any longer.
    pub(crate) fn lose(&self, node: &str, reason: LossReason) {
        let held = self.book().nodes.get(node).cloned().flatten();
        if let Some(held) = held {
            held.lease.lose(reason);
        }
    }
}
