use serde::{Deserialize, Serialize};

/// What a worker tells the narrator, one line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The lock is ours, and the fence is raised.
    Granted { token: i64 },
    /// So many were in stock.
    Read { token: i64, count: i64 },
    /// It is about to write that so many are left.
    Writing { token: i64, left: i64 },
    /// The process is about to stop itself.
    Stopping { token: i64, place: Place },
    /// The sale was written.
    Sold {
        token: i64,
        quantity: i64,
        left: i64,
    },
    /// The resource refused the write: it has seen a newer token.
    RefusedByResource { mine: i64, current: i64 },
    /// The guard refused, and nothing was sent.
    RefusedByGuard { token: i64, reason: String },
    /// Anything else, which should not happen here.
    Failed { reason: String },
}

/// Where a worker stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// After the guard was asked, before the first byte is sent.
    InsideWrite,
    /// After the stock was read, before the guard is asked.
    BetweenSteps,
}

impl Event {
    /// Tells the narrator.
    pub(crate) fn tell(&self) {
        let line = serde_json::to_string(self).expect("an event has a JSON form");
        println!("{line}");
    }
}
