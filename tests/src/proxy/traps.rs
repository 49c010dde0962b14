//! Faults that befall one request.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use super::traffic::Request;

/// What befalls a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server gets it, its reply is lost, and the connection goes on.
    DropReply,
    /// The server gets it, and the connection is closed in place of its reply.
    CutAtReply,
    /// The connection is closed before the server gets it.
    CutAtRequest,
}

type Matching = Box<dyn Fn(&Request) -> bool + Send>;

pub(super) struct Trap {
    pub(super) fault: Fault,
    matching: Matching,
    sprung: oneshot::Sender<()>,
}

impl Trap {
    pub(super) fn spring(self) {
        // Nobody may be waiting for it.
        let _ = self.sprung.send(());
    }
}

impl fmt::Debug for Trap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Trap")
            .field("fault", &self.fault)
            .finish_non_exhaustive()
    }
}

/// The traps that wait for their request.
#[derive(Debug, Default)]
pub(super) struct Traps(Mutex<Vec<Trap>>);

impl Traps {
    pub(super) fn set(&self, fault: Fault, matching: Matching) -> Sprung {
        let (sprung, happened) = oneshot::channel();
        let mut traps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        traps.push(Trap {
            fault,
            matching,
            sprung,
        });
        Sprung(happened)
    }

    /// The oldest trap for this request, which is then no longer set.
    pub(super) fn take(&self, request: &Request) -> Option<Trap> {
        let mut traps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = traps.iter().position(|trap| (trap.matching)(request))?;
        Some(traps.remove(index))
    }
}

/// Tells when the fault has befallen its request.
#[derive(Debug)]
pub struct Sprung(oneshot::Receiver<()>);

impl Sprung {
    /// Waits for it.
    ///
    /// # Panics
    /// When the proxy, or the connection of that request, is gone before.
    pub async fn happened(self) {
        self.0
            .await
            .expect("the connection ended before the fault befell its request");
    }
}
