use std::collections::HashMap;

use fenced_core::{FencingToken, Mode};

use crate::gate::entry::{Applied, GateEntry};
use crate::gate::seen::Seen;

/// What all entries together say.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) fences: HashMap<String, Seen>,
    pub(crate) requests: Requests,
    pub(crate) floor: i64,
    resets: Vec<GateEntry>,
}

/// The requests that were applied, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    by_id: HashMap<String, Applied>,
    bytes: usize,
    /// The smallest token of which all are known.
    known_from: i64,
    oldest: Option<u64>,
}

impl Ledger {
    pub(crate) fn of(entries: impl IntoIterator<Item = GateEntry>) -> Self {
        let mut ledger = Self::default();
        entries.into_iter().for_each(|entry| ledger.add(entry));
        ledger
    }

    fn add(&mut self, entry: GateEntry) {
        match entry {
            GateEntry::Raised {
                resource,
                token,
                mode,
            } => self.fences.entry(resource).or_default().raise(mode, token),
            GateEntry::Applied(applied) => self.requests.insert(applied),
            GateEntry::Collected { floor } => {
                self.floor = self.floor.max(floor.get());
                self.fences.retain(|_, seen| seen.newest() >= floor.get());
                self.requests.collect(floor);
            }
            GateEntry::Expired { before } => self.requests.expire(before),
            GateEntry::Forgotten { below } => {
                self.requests.knows_only_from(below.get());
            }
            GateEntry::Reset {
                ref resource,
                token,
                ..
            } => {
                let seen = Seen {
                    exclusive: token.get(),
                    shared: 0,
                };
                self.fences.insert(resource.clone(), seen);
                self.resets.push(entry);
            }
        }
    }

    /// The fewest entries that say the same. Resets are kept: they are what was done by hand.
    pub(crate) fn into_entries(self) -> Vec<GateEntry> {
        let token = |number| FencingToken::try_from(number).ok();
        let mut entries = self.resets;
        entries.extend(token(self.floor).map(|floor| GateEntry::Collected { floor }));
        let known_from = token(self.requests.known_from);
        entries.extend(known_from.map(|below| GateEntry::Forgotten { below }));
        for (resource, seen) in self.fences {
            // A reset said what the fence was; only from here on it is what it has become.
            for (mode, raised) in [
                (Mode::Exclusive, seen.exclusive),
                (Mode::Shared, seen.shared),
            ] {
                let resource = resource.clone();
                entries.extend(token(raised).map(|token| GateEntry::Raised {
                    resource,
                    token,
                    mode,
                }));
            }
        }
        let requests = self.requests.by_id.into_values();
        entries.extend(requests.map(GateEntry::Applied));
        entries
    }
}

impl Requests {
    pub(crate) fn get(&self, id: &str) -> Option<&Applied> {
        self.by_id.get(id)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// When the oldest was applied; it may be gone by now.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.oldest
    }

    pub(crate) fn insert(&mut self, applied: Applied) {
        self.oldest = Some(
            self.oldest
                .map_or(applied.at, |oldest| oldest.min(applied.at)),
        );
        self.bytes += applied.bytes();
        if let Some(replaced) = self.by_id.insert(applied.id.clone(), applied) {
            self.bytes -= replaced.bytes();
        }
    }

    /// Whether a request under this token that is not here was never applied.
    pub(crate) fn knows_all_of(&self, token: FencingToken) -> bool {
        token.get() >= self.known_from
    }

    /// A request under this token may have been applied without being here.
    pub(crate) fn doubt(&mut self, token: FencingToken) {
        self.knows_only_from(token.get().saturating_add(1));
    }

    pub(crate) fn knows_only_from(&mut self, token: i64) {
        self.known_from = self.known_from.max(token);
    }

    pub(crate) fn collect(&mut self, floor: FencingToken) -> u64 {
        self.knows_only_from(floor.get());
        self.retain(|applied| applied.token >= floor)
    }

    pub(crate) fn expire(&mut self, before: u64) {
        let expired = self.by_id.values().filter(|applied| applied.at < before);
        if let Some(newest) = expired.map(|applied| applied.token).max() {
            self.doubt(newest);
        }
        self.retain(|applied| applied.at >= before);
    }

    fn retain(&mut self, keep: impl Fn(&Applied) -> bool) -> u64 {
        let before = self.by_id.len();
        self.by_id.retain(|_, applied| keep(applied));
        self.bytes = self.by_id.values().map(Applied::bytes).sum();
        self.oldest = self.by_id.values().map(|applied| applied.at).min();
        (before - self.by_id.len()) as u64
    }
}
