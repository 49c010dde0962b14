//! What the network does to what it carries.

use std::time::Duration;

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Requests.
    ToServer,
    /// Replies and watch events.
    ToClient,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lane {
    pub(super) silent: bool,
    pub(super) delay: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) refusing: bool,
    pub(super) closed: bool,
    /// The newest connection that is to be cut.
    pub(super) cut_up_to: u64,
    to_server: Lane,
    to_client: Lane,
}

impl Rules {
    pub(super) fn lane(&self, way: Way) -> Lane {
        match way {
            Way::ToServer => self.to_server,
            Way::ToClient => self.to_client,
        }
    }

    pub(super) fn lane_mut(&mut self, way: Way) -> &mut Lane {
        match way {
            Way::ToServer => &mut self.to_server,
            Way::ToClient => &mut self.to_client,
        }
    }
}
