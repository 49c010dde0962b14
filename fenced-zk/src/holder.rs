//! A lock that is held: from the grant to the delete.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fenced_core::{LeaseControl, LeaseHandle, LockError, LossReason, Released};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::node::Node;
use crate::own_watch::{OwnWatch, Seen};
use crate::removal;
use crate::session::Session;

pub(crate) type Report = oneshot::Sender<Released>;

/// What frees the lock: a message to the session's thread, or the end of the channel.
pub(crate) struct Handle {
    release: oneshot::Sender<Report>,
}

/// A lock that has been granted.
pub(crate) struct Grant {
    pub(crate) node: Node,
    pub(crate) watch: OwnWatch,
    pub(crate) lease: LeaseControl,
    /// Where the holder's end is told.
    pub(crate) released: oneshot::Receiver<Report>,
}

pub(crate) fn handle() -> (Handle, oneshot::Receiver<Report>) {
    let (release, released) = oneshot::channel();
    (Handle { release }, released)
}

#[async_trait]
impl LeaseHandle for Handle {
    async fn release(self: Box<Self>) -> Result<Released, LockError> {
        let (report, reported) = oneshot::channel();
        // Without a session there is no node.
        if self.release.send(report).is_err() {
            return Ok(Released::AlreadyGone);
        }
        Ok(reported.await.unwrap_or(Released::AlreadyGone))
    }
}

/// How long a section runs before the watch on its node is worth its price.
const WATCH_AFTER: Duration = Duration::from_millis(5);

/// Waits until the lease is over, and sends the delete.
pub(crate) async fn hold(session: &Arc<Session>, mut grant: Grant) {
    let report = grant.ended().await;
    if let Some(newer) = grant.lease.newer_token() {
        session.marks.refused(grant.lease.path(), newer);
    }
    removal::remove(session, grant.node, Some(grant.watch), report);
}

impl Grant {
    /// Waits until the holder is done or the lease is lost; who wants to know of the delete.
    async fn ended(&mut self) -> Option<Report> {
        let Self {
            watch,
            lease,
            released,
            ..
        } = self;
        if !watch.is_armed() {
            tokio::select! {
                biased;
                report = &mut *released => return report.ok(),
                () = sleep(WATCH_AFTER) => {}
            }
        }
        let mut is_gone = false;
        loop {
            tokio::select! {
                biased;
                report = &mut *released => return report.ok(),
                seen = watch.see(), if !is_gone => match seen {
                    Seen::RevokeAsked => lease.ask_to_release(),
                    Seen::Gone => {
                        is_gone = true;
                        lease.lose(LossReason::NodeDeleted);
                    }
                },
            }
        }
    }
}
