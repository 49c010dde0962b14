//! Proves the held nodes to be there, in one transaction of checks, which only a quorum answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use fenced_core::LossReason;
use tokio::time::{sleep_until, timeout};
use zookeeper_client::{Error, MultiWriteError};

use crate::session::Session;

/// Sends a heartbeat about every third of the timeout, never sooner, while something is held.
pub(crate) async fn heartbeat(session: &Arc<Session>) -> Infallible {
    let interval = session.timeout() * 7 / 20;
    let mut last = None;
    loop {
        let Some(proof) = session.oldest_proof() else {
            session.first_held.notified().await;
            continue;
        };
        let due = proof.max(last.unwrap_or(proof)) + interval;
        if due > Instant::now() {
            sleep_until(due.into()).await;
            continue;
        }
        session.connected().await;
        let nodes = session.held().into_keys().collect();
        last = Some(Instant::now());
        // A late answer is as good as it was when its request was sent.
        session.spawn(beat(Arc::clone(session), nodes));
    }
}

/// Checks all nodes; without those that are gone, once more.
async fn beat(session: Arc<Session>, mut nodes: Vec<Arc<str>>) {
    while !nodes.is_empty() {
        let sent = Instant::now();
        let checked = timeout(session.timeout(), check(&session, &nodes)).await;
        match checked.unwrap_or(Err(Checked::Unknown)) {
            Ok(()) => {
                session.prove(sent);
                for node in &nodes {
                    session.renew(node, sent);
                }
                return;
            }
            Err(Checked::Gone(index)) => {
                let node = nodes.swap_remove(index);
                session.lose(&node, LossReason::NodeDeleted);
            }
            // The leases run on; the next heartbeat may get through.
            Err(Checked::Unknown) => return,
        }
    }
}

/// Why not all nodes are proven to be there.
pub(crate) enum Checked {
    /// The one at this index is gone.
    Gone(usize),
    /// There was no usable answer.
    Unknown,
}

impl From<Error> for Checked {
    fn from(_: Error) -> Self {
        Self::Unknown
    }
}

/// A peer that asks for the lock writes to the node, so its version says nothing.
const ANY_VERSION: i32 = -1;

/// Asks a quorum whether all these nodes are there.
pub(crate) async fn check(session: &Session, nodes: &[Arc<str>]) -> Result<(), Checked> {
    let mut checks = session.client.new_multi_writer();
    for node in nodes {
        checks
            .add_check_version(node, ANY_VERSION)
            .map_err(|_| Checked::Unknown)?;
    }
    match checks.commit().await {
        Ok(_) => Ok(()),
        Err(MultiWriteError::OperationFailed {
            index,
            source: Error::NoNode,
        }) if index < nodes.len() => Err(Checked::Gone(index)),
        Err(error) => {
            session.judge(&error.into());
            Err(Checked::Unknown)
        }
    }
}
