use fenced_core::LossReason;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// A change of a session with the ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionEvent {
    /// Requests reach the server: for the first time, or again, with all leases verified.
    Connected,
    /// The connection is lost, and every lease suspect.
    Suspect,
    /// The session is over and its leases are lost; another one is opened in the background.
    ///
    /// With [`LossReason::DeadlinePassed`] no server could be reached for too long.
    Over(LossReason),
    /// The lock service was closed.
    Closed,
}

/// The changes of a lock service's sessions, for those who log them or drain a server; made by
/// [`ZkLocks::events`](crate::ZkLocks::events).
///
/// A slow reader misses old changes, never the latest.
#[derive(Debug)]
pub struct SessionEvents {
    receiver: broadcast::Receiver<SessionEvent>,
}

impl SessionEvents {
    /// Waits for the next change; `None` once there will be none.
    ///
    /// # Cancel safety
    /// No change is missed by dropping the future.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        loop {
            match self.receiver.recv().await {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// Where changes are told.
#[derive(Clone)]
pub(crate) struct Events {
    sender: broadcast::Sender<SessionEvent>,
}

impl Events {
    const KEPT: usize = 64;

    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::Sender::new(Self::KEPT),
        }
    }

    pub(crate) fn tell(&self, event: SessionEvent) {
        // Nobody may be listening.
        let _ = self.sender.send(event);
    }

    pub(crate) fn listen(&self) -> SessionEvents {
        let receiver = self.sender.subscribe();
        SessionEvents { receiver }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_reader_misses_old_changes_and_never_the_latest() {
        let events = Events::new();
        let mut slow = events.listen();
        for _ in 0..10 * Events::KEPT {
            events.tell(SessionEvent::Suspect);
        }
        events.tell(SessionEvent::Closed);
        drop(events);
        let mut seen = Vec::new();
        while let Some(event) = slow.next().await {
            seen.push(event);
        }
        assert!(seen.len() <= Events::KEPT, "{}", seen.len());
        assert_eq!(seen.last(), Some(&SessionEvent::Closed));
    }
}
