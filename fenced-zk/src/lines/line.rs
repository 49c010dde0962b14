use std::collections::VecDeque;
use std::sync::Arc;

use fenced_core::{LockPath, Queue};
use tokio::sync::{Notify, oneshot};

use super::Answer;
use crate::refusal::Refusal;

/// Which line: exclusive waiters of a path share one, a shared waiter has its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LineKey {
    pub(crate) path: LockPath,
    /// Zero for the exclusive line.
    pub(super) reader: u64,
}

impl LineKey {
    pub(crate) fn is_shared(&self) -> bool {
        self.reader != 0
    }
}

/// How somebody wants to stand in a line.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) path: LockPath,
    pub(crate) shared: bool,
    /// Whether to be answered at once when the lock is not free.
    pub(crate) tries_once: bool,
    pub(crate) label: String,
}

pub(super) struct Waiter {
    pub(super) ticket: u64,
    pub(super) tries_once: bool,
    pub(super) label: String,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// Those of this process who wait for one lock.
pub(super) struct Line {
    pub(super) host: usize,
    /// What its watches may cost.
    pub(super) watch_bytes: usize,
    /// Whether a contender stands for it at present.
    pub(super) served: bool,
    pub(super) waiters: VecDeque<Waiter>,
    /// What its contender saw last; `None` if no server has answered yet.
    pub(super) seen: Option<Queue>,
    pub(super) deserted: Arc<Notify>,
}

impl Line {
    pub(super) fn new(host: usize, watch_bytes: usize, first: Waiter) -> Self {
        Self {
            host,
            watch_bytes,
            served: false,
            waiters: VecDeque::from([first]),
            seen: None,
            deserted: Arc::default(),
        }
    }

    /// What is in front of the waiter at `index`.
    pub(super) fn queue(&self, index: usize) -> Queue {
        let seen = self.seen.clone().unwrap_or_default();
        let ahead = seen.ahead.unwrap_or_default() + index;
        seen.ahead(ahead)
    }

    pub(super) fn is_unused(&self) -> bool {
        self.waiters.is_empty() && !self.served
    }

    pub(super) fn leave(&mut self, ticket: u64) {
        if let Some(index) = self.index_of(ticket) {
            self.waiters.remove(index);
        }
        self.tell_if_deserted();
    }

    /// Where a waiter stands: tickets are in the order of the line.
    pub(super) fn index_of(&self, ticket: u64) -> Option<usize> {
        self.waiters
            .binary_search_by_key(&ticket, |waiter| waiter.ticket)
            .ok()
    }

    pub(super) fn refuse(&mut self, refusal: &Refusal, whom: impl Fn(&Waiter) -> bool) {
        let (refused, kept): (VecDeque<_>, _) = self.waiters.drain(..).partition(whom);
        self.waiters = kept;
        for waiter in refused {
            // Whoever has gone meanwhile does not want to know.
            let _ = waiter.answer.send(Err(refusal.clone()));
        }
        self.tell_if_deserted();
    }

    fn tell_if_deserted(&self) {
        if self.waiters.is_empty() {
            self.deserted.notify_one();
        }
    }
}
