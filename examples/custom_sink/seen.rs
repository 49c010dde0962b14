use std::collections::HashMap;

use fenced::{Fence, FencingToken, Request, SinkError};

use crate::line::{Line, Moved};

/// What the lines of a journal amount to.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    fences: HashMap<String, FencingToken>,
    counts: HashMap<String, i64>,
    requests: HashMap<String, Moved>,
}

impl Seen {
    pub(crate) fn add(&mut self, line: Line) {
        self.fences.insert(line.resource.clone(), line.token);
        if let Some(moved) = line.moved {
            self.counts.insert(line.resource, moved.count);
            self.requests.insert(moved.request.clone(), moved);
        }
    }

    pub(crate) fn count(&self, resource: &str) -> i64 {
        self.counts.get(resource).copied().unwrap_or_default()
    }

    /// Whether the token is a new one; refuses one that is older than the newest.
    pub(crate) fn compare(&self, fence: &Fence) -> Result<bool, SinkError> {
        match self.fences.get(&fence.resource) {
            Some(&current) if current > fence.token => Err(SinkError::Stale {
                mine: fence.token,
                current,
            }),
            current => Ok(current != Some(&fence.token)),
        }
    }

    pub(crate) fn is_stale(&self, fence: &Fence) -> bool {
        self.compare(fence).is_err()
    }

    /// The answer to a request that was made before.
    pub(crate) fn answer(&self, request: &Request) -> Result<Option<i64>, SinkError> {
        let digest = request.digest()?;
        match self.requests.get(request.id()) {
            Some(moved) if moved.digest != digest => Err(request.mismatch()),
            moved => Ok(moved.map(|moved| moved.count)),
        }
    }
}
