use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Instant;

use crate::state::LeaseState;

/// The thread that ends leases at their deadline, whatever a runtime is doing.
///
/// An entry is not moved when its lease is renewed: it comes up, sees the new deadline, and is
/// put back. A lease that was released leaves its entry until then.
pub(crate) struct LeaseTimer {
    entries: Mutex<Entries>,
    earlier: Condvar,
}

#[derive(Default)]
struct Entries {
    heap: BinaryHeap<Entry>,
    /// How many entries may be there before those of dropped leases are looked for.
    crowd: usize,
}

/// A lease to be looked at; ordered so that the earliest is the heap's greatest.
struct Entry {
    at: Reverse<Instant>,
    lease: Weak<LeaseState>,
}

impl LeaseTimer {
    pub(crate) fn watch(lease: &Arc<LeaseState>) {
        static TIMER: LazyLock<&'static LeaseTimer> = LazyLock::new(LeaseTimer::start);
        TIMER.add(Entry {
            at: Reverse(lease.ends_at()),
            lease: Arc::downgrade(lease),
        });
    }

    fn start() -> &'static Self {
        let timer: &'static Self = Box::leak(Box::new(Self {
            entries: Mutex::default(),
            earlier: Condvar::new(),
        }));
        thread::Builder::new()
            .name("fenced-leases".to_owned())
            .spawn(|| timer.run())
            .expect("a thread for the deadlines of leases; without it no lease is safe");
        timer
    }

    fn add(&self, entry: Entry) {
        let is_earliest = self.entries().add(entry);
        if is_earliest {
            self.earlier.notify_one();
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut entries = self.entries();
        loop {
            let Some(first) = entries.heap.peek() else {
                entries = self
                    .earlier
                    .wait(entries)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = first.at.0.saturating_duration_since(Instant::now());
            if !left.is_zero() && first.lease.strong_count() > 0 {
                let (woken, _) = self
                    .earlier
                    .wait_timeout(entries, left)
                    .unwrap_or_else(PoisonError::into_inner);
                entries = woken;
                continue;
            }
            let due = entries.heap.pop();
            drop(entries);
            if let Some(again) = due.and_then(Entry::look_safely) {
                self.add(again);
            }
            entries = self.entries();
        }
    }
}

impl Entries {
    /// Says whether it is the earliest.
    fn add(&mut self, entry: Entry) -> bool {
        if self.heap.len() >= self.crowd {
            self.heap.retain(|entry| entry.lease.strong_count() > 0);
            self.crowd = (2 * self.heap.len()).max(1_024);
        }
        let is_earliest = self.heap.peek().is_none_or(|first| first < &entry);
        self.heap.push(entry);
        is_earliest
    }
}

impl Entry {
    /// A lock service or a subscriber that panics must not end the only timer.
    fn look_safely(self) -> Option<Self> {
        catch_unwind(AssertUnwindSafe(|| self.look())).unwrap_or_else(|_| {
            tracing::error!("a lock service panicked when its lease was lost");
            None
        })
    }

    /// Ends the lease if it is over; else says when to look again.
    fn look(self) -> Option<Self> {
        let lease = self.lease.upgrade()?;
        if lease.loss().is_some() || lease.is_released() {
            return None;
        }
        Some(Self {
            at: Reverse(lease.ends_at()),
            lease: self.lease,
        })
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
