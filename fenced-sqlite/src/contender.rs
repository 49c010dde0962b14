use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use fenced_core::{Budget, Lease, LockError, LockPath, Queue as Standing};
use tokio::sync::oneshot;

use crate::rows::Entry;

/// How long an acquire that asks only once waits for the file itself.
const ASKING: Duration = Duration::from_secs(1);

/// What the thread of a [`SqliteLocks`](crate::SqliteLocks) is asked to do.
pub(crate) enum Job {
    Enter(Contender),
    Leave(Leaving),
}

/// Somebody who waits for a lock, until its `reply` is dropped.
pub(crate) struct Contender {
    pub(crate) path: LockPath,
    pub(crate) label: String,
    pub(crate) budget: Budget,
    pub(crate) reply: oneshot::Sender<Result<Lease, LockError>>,
    /// For the lease, which gives itself back on this way. It keeps the thread alive, too.
    pub(crate) jobs: Sender<Job>,
}

/// A row to be removed.
pub(crate) struct Leaving {
    pub(crate) token: i64,
    pub(crate) reply: Option<oneshot::Sender<bool>>,
    /// When the row has expired anyway.
    pub(crate) until: Instant,
}

impl Contender {
    pub(crate) fn entry(&self) -> Entry<'_> {
        Entry {
            path: &self.path,
            label: &self.label,
            only_if_free: self.budget.tries_once(),
        }
    }

    pub(crate) fn time_out(self, standing: Standing) {
        let error = LockError::timeout(&self.path, self.budget.waited(), standing);
        let _ = self.reply.send(Err(error));
    }
}

/// When a contender is told that its time is up.
pub(crate) fn limit(budget: &Budget) -> Instant {
    let asking = if budget.tries_once() {
        ASKING
    } else {
        Duration::ZERO
    };
    budget.deadline() + asking
}
