//! Whether requests reach the server.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::Session;

/// Whether requests reach the server, and how often that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) connected: bool,
    /// One more after each reconnection.
    pub(crate) epoch: u64,
}

impl Session {
    pub(crate) fn link(&self) -> Link {
        *self.link.borrow()
    }

    pub(crate) fn set_connected(&self, connected: bool) {
        if connected {
            self.book().given_up_at = None;
        }
        self.link.send_modify(|link| {
            link.epoch += u64::from(connected);
            link.connected = connected;
        });
    }

    /// Waits for a connection, and says which.
    pub(crate) async fn connected(&self) -> u64 {
        let mut link = self.link.subscribe();
        let connected = link.wait_for(|link| link.connected).await;
        match connected.map(|link| link.epoch) {
            Ok(epoch) => epoch,
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits for a connection after a request failed, which may be known sooner here than there.
    pub(crate) async fn settled(&self) {
        sleep(Duration::from_millis(10)).await;
        self.connected().await;
    }

    /// Whether the connection is another one than `epoch`, or none.
    pub(crate) fn is_disturbed(&self, epoch: u64) -> bool {
        self.link() != Link::undisturbed(epoch)
    }

    /// Waits until the connection is another one than `epoch`, or none.
    pub(crate) async fn disturbed(&self, epoch: u64) {
        let mut link = self.link.subscribe();
        let undisturbed = Link::undisturbed(epoch);
        let _ = link.wait_for(|link| *link != undisturbed).await;
    }

    /// When the session counts as over, if it is not connected until then.
    pub(crate) fn given_up_at(&self) -> Instant {
        let longest = Instant::now() + self.patience();
        *self.book().given_up_at.get_or_insert(longest)
    }

    /// How long a connection is awaited before the session counts as over. All its leases have
    /// ended by then. The client's own patience ends later, on some networks in a busy loop.
    fn patience(&self) -> Duration {
        self.timeout() * 17 / 20
    }

    /// How long the end of the session may be awaited.
    pub(crate) fn farewell_limit(&self) -> Duration {
        self.given_up_at().saturating_duration_since(Instant::now())
    }
}

impl Link {
    pub(super) fn undisturbed(epoch: u64) -> Self {
        Self {
            connected: true,
            epoch,
        }
    }
}
