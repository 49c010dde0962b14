use std::sync::Arc;

use fenced_core::Queue;
use tokio::sync::oneshot;

use super::{Answer, LineKey, Lines};

/// A place in a line; dropping it leaves the line.
pub(crate) struct Place {
    pub(super) lines: Arc<Lines>,
    pub(super) key: LineKey,
    pub(super) ticket: u64,
    pub(super) answer: oneshot::Receiver<Answer>,
}

impl Place {
    pub(crate) fn key(&self) -> &LineKey {
        &self.key
    }

    /// The lease, or why there is none.
    pub(crate) fn answer(&mut self) -> &mut oneshot::Receiver<Answer> {
        &mut self.answer
    }

    /// What is known to be in front of this place, if a server has answered yet.
    pub(crate) fn queue(&self) -> Option<Queue> {
        let state = self.lines.state();
        let line = state.lines.get(&self.key)?;
        let index = line.index_of(self.ticket);
        line.seen.as_ref()?;
        Some(line.queue(index?))
    }

    pub(crate) fn host(&self) -> Option<usize> {
        self.lines.state().lines.get(&self.key).map(|it| it.host)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.lines.state();
        if let Some(line) = state.lines.get_mut(&self.key) {
            line.leave(self.ticket);
        }
        self.lines.end_if_unused(state, &self.key);
    }
}
