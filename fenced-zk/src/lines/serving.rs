use std::sync::Arc;

use fenced_core::Queue;
use tokio::sync::oneshot;

use super::line::Line;
use super::{Answer, LineKey, Lines};
use crate::refusal::Refusal;

/// The line is served as long as this exists.
pub(crate) struct Serving {
    lines: Arc<Lines>,
    key: LineKey,
    ended: bool,
}

impl Serving {
    pub(super) fn new(lines: &Arc<Lines>, key: &LineKey) -> Self {
        Self {
            lines: Arc::clone(lines),
            key: key.clone(),
            ended: false,
        }
    }

    pub(crate) fn key(&self) -> &LineKey {
        &self.key
    }

    /// The label of the first in line. `None` ends the service: nobody stands in it.
    pub(crate) fn first(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let mut state = self.lines.state();
        let line = state.lines.get_mut(&self.key)?;
        if let Some(first) = line.waiters.front() {
            return Some(first.label.clone());
        }
        self.ended = true;
        line.served = false;
        self.lines.end_if_unused(state, &self.key);
        None
    }

    pub(crate) fn is_deserted(&self) -> bool {
        let state = self.lines.state();
        let is_empty = |line: &Line| line.waiters.is_empty();
        state.lines.get(&self.key).is_none_or(is_empty)
    }

    /// Waits until nobody stands in the line.
    pub(crate) async fn deserted(&self) {
        loop {
            let deserted = {
                let state = self.lines.state();
                let Some(line) = state.lines.get(&self.key) else {
                    return;
                };
                if line.waiters.is_empty() {
                    return;
                }
                Arc::clone(&line.deserted)
            };
            deserted.notified().await;
        }
    }

    /// Takes the first out of the line, to be answered with a lease.
    pub(crate) fn take(&self) -> Option<oneshot::Sender<Answer>> {
        let mut state = self.lines.state();
        let line = state.lines.get_mut(&self.key)?;
        while let Some(waiter) = line.waiters.pop_front() {
            if !waiter.answer.is_closed() {
                return Some(waiter.answer);
            }
        }
        None
    }

    /// Remembers what stands in front of the line.
    pub(crate) fn saw(&self, queue: Queue) {
        self.change(|line| line.seen = Some(queue));
    }

    pub(crate) fn refuse_all(&self, refusal: &Refusal) {
        self.change(|line| line.refuse(refusal, |_| true));
    }

    /// Refuses those who do not want to wait.
    pub(crate) fn refuse_impatient(&self) {
        self.change(|line| {
            let queue = line.queue(0);
            line.refuse(&Refusal::NotFree(queue), |waiter| waiter.tries_once);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Line)) {
        if let Some(line) = self.lines.state().lines.get_mut(&self.key) {
            change(line);
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut state = self.lines.state();
        if let Some(line) = state.lines.get_mut(&self.key) {
            line.served = false;
            line.seen = None;
        }
        self.lines.end_if_unused(state, &self.key);
    }
}
