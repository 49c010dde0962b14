//! The local queues: whoever in this process waits for a lock, first come first served.
//!
//! A line has one contender at ZooKeeper, however many stand in it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fenced_core::{Lease, LockPath, Queue};
use tokio::sync::{Notify, oneshot};

use crate::refusal::Refusal;

pub(crate) type Answer = Result<Lease, Refusal>;

/// Which line: exclusive waiters of a path share one, a shared waiter has its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LineKey {
    pub(crate) path: LockPath,
    /// Zero for the exclusive line.
    reader: u64,
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

struct Waiter {
    ticket: u64,
    tries_once: bool,
    label: String,
    answer: oneshot::Sender<Answer>,
}

struct Line {
    host: usize,
    /// What its watches may cost.
    watch_bytes: usize,
    /// Whether a contender stands for it at present.
    served: bool,
    waiters: VecDeque<Waiter>,
    /// What its contender saw last; `None` if no server has answered yet.
    seen: Option<Queue>,
    deserted: Arc<Notify>,
}

#[derive(Default)]
pub(crate) struct Lines {
    state: Mutex<State>,
    line_ended: Notify,
}

#[derive(Default)]
struct State {
    closed: bool,
    tickets: u64,
    lines: HashMap<LineKey, Line>,
    /// For each host, what the watches of its lines may cost.
    watch_bytes: Vec<usize>,
}

/// A place in a line; dropping it leaves the line.
pub(crate) struct Place {
    lines: Arc<Lines>,
    key: LineKey,
    ticket: u64,
    answer: oneshot::Receiver<Answer>,
}

/// The line is served as long as this exists.
pub(crate) struct Serving {
    lines: Arc<Lines>,
    key: LineKey,
    ended: bool,
}

/// The client loses a session whose watched paths exceed 128 KiB when it reconnects.
const WATCH_BYTES_PER_HOST: usize = 112 * 1024;

impl Lines {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place. `Some` host must be told to serve the line, which is new.
    pub(crate) fn stand(
        self: &Arc<Self>,
        request: Request,
        watch_bytes: usize,
    ) -> Result<(Place, Option<usize>), Refusal> {
        let (sender, answer) = oneshot::channel();
        let mut state = self.state();
        if state.closed {
            return Err(Refusal::Closed);
        }
        state.tickets += 1;
        let ticket = state.tickets;
        let reader = if request.shared { ticket } else { 0 };
        let path = request.path;
        let key = LineKey { path, reader };
        let waiter = Waiter {
            ticket,
            tries_once: request.tries_once,
            label: request.label,
            answer: sender,
        };
        let new_on = state.join(&key, waiter, watch_bytes)?;
        drop(state);
        let lines = Arc::clone(self);
        let place = Place {
            lines,
            key,
            ticket,
            answer,
        };
        Ok((place, new_on))
    }

    /// Begins to serve a line; `None` if it is served already, or nobody stands in it.
    pub(crate) fn serve(self: &Arc<Self>, key: &LineKey) -> Option<Serving> {
        let mut state = self.state();
        let line = state.lines.get_mut(key)?;
        if std::mem::replace(&mut line.served, true) {
            return None;
        }
        Some(Serving {
            lines: Arc::clone(self),
            key: key.clone(),
            ended: false,
        })
    }

    /// The lines of a host.
    pub(crate) fn of_host(&self, host: usize) -> Vec<LineKey> {
        let state = self.state();
        let of_host = |(key, line): (&LineKey, &Line)| (line.host == host).then(|| key.clone());
        state.lines.iter().filter_map(of_host).collect()
    }

    /// Refuses whoever stands in a line, and whoever comes.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        for line in state.lines.values_mut() {
            line.refuse(&Refusal::Closed, |_| true);
        }
    }

    /// Waits until nobody waits or holds.
    pub(crate) async fn emptied(&self) {
        while !self.state().lines.is_empty() {
            self.line_ended.notified().await;
        }
    }
}

impl State {
    fn join(
        &mut self,
        key: &LineKey,
        waiter: Waiter,
        watch_bytes: usize,
    ) -> Result<Option<usize>, Refusal> {
        if let Some(line) = self.lines.get_mut(key) {
            if waiter.tries_once {
                return Err(Refusal::NotFree(line.queue(line.waiters.len())));
            }
            line.waiters.push_back(waiter);
            return Ok(None);
        }
        let host = self.host_with_room(watch_bytes);
        self.watch_bytes[host] += watch_bytes;
        let line = Line {
            host,
            watch_bytes,
            served: false,
            waiters: VecDeque::from([waiter]),
            seen: None,
            deserted: Arc::default(),
        };
        self.lines.insert(key.clone(), line);
        Ok(Some(host))
    }

    /// Forgets a line that nobody stands in or serves.
    fn remove_unused(&mut self, key: &LineKey) {
        let is_unused = |line: &Line| line.waiters.is_empty() && !line.served;
        if self.lines.get(key).is_some_and(is_unused) {
            if let Some(line) = self.lines.remove(key) {
                self.watch_bytes[line.host] -= line.watch_bytes;
            }
        }
    }

    fn host_with_room(&mut self, watch_bytes: usize) -> usize {
        let has_room = |used: &usize| *used == 0 || used + watch_bytes <= WATCH_BYTES_PER_HOST;
        self.watch_bytes
            .iter()
            .position(has_room)
            .unwrap_or_else(|| {
                self.watch_bytes.push(0);
                self.watch_bytes.len() - 1
            })
    }
}

impl Line {
    /// What is in front of the waiter at `index`.
    fn queue(&self, index: usize) -> Queue {
        let seen = self.seen.clone().unwrap_or_default();
        let ahead = seen.ahead.unwrap_or_default() + index;
        seen.ahead(ahead)
    }

    fn refuse(&mut self, refusal: &Refusal, whom: impl Fn(&Waiter) -> bool) {
        let (refused, kept): (VecDeque<_>, _) = self.waiters.drain(..).partition(whom);
        self.waiters = kept;
        for waiter in refused {
            // Whoever has gone meanwhile does not want to know.
            let _ = waiter.answer.send(Err(refusal.clone()));
        }
        if self.waiters.is_empty() {
            self.deserted.notify_one();
        }
    }
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
        let index = line.waiters.iter().position(|it| it.ticket == self.ticket);
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
            line.waiters.retain(|waiter| waiter.ticket != self.ticket);
            if line.waiters.is_empty() {
                line.deserted.notify_one();
            }
        }
        state.remove_unused(&self.key);
        self.lines.line_ended.notify_one();
    }
}

impl Serving {
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
        state.remove_unused(&self.key);
        self.lines.line_ended.notify_one();
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
        if let Some(line) = self.lines.state().lines.get_mut(&self.key) {
            line.seen = Some(queue);
        }
    }

    pub(crate) fn refuse_all(&self, refusal: &Refusal) {
        if let Some(line) = self.lines.state().lines.get_mut(&self.key) {
            line.refuse(refusal, |_| true);
        }
    }

    /// Refuses those who do not want to wait.
    pub(crate) fn refuse_impatient(&self) {
        if let Some(line) = self.lines.state().lines.get_mut(&self.key) {
            let queue = line.queue(0);
            line.refuse(&Refusal::NotFree(queue), |waiter| waiter.tries_once);
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
        state.remove_unused(&self.key);
    }
}
