//! What has passed through the proxy.

use std::collections::BTreeSet;
use std::time::Instant;

use super::operation::Operation;

/// A request as it went to the server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// What it asks for.
    pub operation: Operation,
    /// The one node it is about, if it is about one.
    pub path: Option<String>,
    /// Whether it also asks for a watch.
    pub watch: bool,
    /// When the client had sent it.
    pub at: Instant,
    pub(super) xid: i32,
}

/// The state of a proxy and what went through it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Traffic {
    /// Every request delivered to the server, in order; only a ZooKeeper proxy sees them.
    pub requests: Vec<Request>,
    /// How many connections there have ever been.
    pub accepted: u64,
    pub(super) open: BTreeSet<u64>,
    pub(super) listening: bool,
    /// Nothing passes any more, as the proxy's thread has ended.
    pub(super) ended: bool,
}

impl Traffic {
    /// How many requests of this kind went to the server.
    #[must_use]
    pub fn count(&self, operation: Operation) -> usize {
        self.matching(|request| request.operation == operation)
    }

    /// How many requests that are as wanted went to the server.
    #[must_use]
    pub fn matching(&self, wanted: impl Fn(&Request) -> bool) -> usize {
        self.requests
            .iter()
            .filter(|request| wanted(request))
            .count()
    }

    /// How many connections are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.open.len()
    }
}
