//! The local queues: whoever in this process waits for a lock, first come first served.
//!
//! A line has one contender at ZooKeeper, however many stand in it.

mod line;
mod place;
mod serving;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fenced_core::Lease;
use tokio::sync::{Notify, oneshot};

use crate::refusal::Refusal;
use line::{Line, Waiter};

pub(crate) use line::{LineKey, Request};
pub(crate) use place::Place;
pub(crate) use serving::Serving;

pub(crate) type Answer = Result<Lease, Refusal>;

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
        let is_served = std::mem::replace(&mut line.served, true);
        (!is_served).then(|| Serving::new(self, key))
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
        loop {
            let mut ended = pin!(self.line_ended.notified());
            // From here on, no end is missed.
            ended.as_mut().enable();
            if self.state().lines.is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Forgets a line that nobody stands in or serves.
    fn end_if_unused(&self, mut state: MutexGuard<'_, State>, key: &LineKey) {
        if state.lines.get(key).is_some_and(Line::is_unused) {
            state.remove(key);
            drop(state);
            self.line_ended.notify_waiters();
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
        let line = Line::new(host, watch_bytes, waiter);
        self.lines.insert(key.clone(), line);
        Ok(Some(host))
    }

    fn remove(&mut self, key: &LineKey) {
        if let Some(line) = self.lines.remove(key) {
            self.watch_bytes[line.host] -= line.watch_bytes;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fenced_core::LockPath;

    use super::*;

    /// A session that ends takes its contenders with it, of lines that everybody has left.
    #[tokio::test]
    async fn whoever_waits_for_the_last_line_is_told_of_its_end() {
        let lines = Arc::<Lines>::default();
        let request = Request {
            path: LockPath::new("/a").unwrap(),
            shared: false,
            tries_once: false,
            label: String::new(),
        };
        let (place, _) = lines.stand(request, 1).ok().unwrap();
        let serving = lines.serve(place.key()).unwrap();
        let leaving = async {
            tokio::task::yield_now().await;
            drop(place);
            tokio::task::yield_now().await;
            drop(serving);
        };
        let emptied = async { tokio::join!(lines.emptied(), lines.emptied(), leaving) };
        let limit = Duration::from_secs(5);
        tokio::time::timeout(limit, emptied).await.unwrap();
    }
}
