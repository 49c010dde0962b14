//! Deleting a contender's node, until that is confirmed or the session is over.

use std::sync::Arc;

use fenced_core::Released;
use tokio::sync::oneshot;
use zookeeper_client::Error;

use crate::failure::Failure;
use crate::node::Node;
use crate::own_watch::OwnWatch;
use crate::pause::Pause;
use crate::session::Session;

/// Sends the delete at once, if there is a connection; the rest is done by a task of its own.
///
/// The node's watch is kept until the delete has fired it: dropped before, it costs a request.
pub(crate) fn remove(
    session: &Arc<Session>,
    node: Node,
    watch: Option<OwnWatch>,
    report: Option<oneshot::Sender<Released>>,
) {
    let sent = session
        .link()
        .connected
        .then(|| session.client.delete(&node.path, None));
    let owner = Arc::clone(session);
    session.spawn(async move {
        let first = match sent {
            Some(sent) => Some(owner.answer(sent).await),
            None => None,
        };
        let released = confirm(&owner, &node, first).await;
        owner.disown(&node.path);
        drop(watch);
        if let Some(report) = report {
            // The holder may not have waited for it.
            let _ = report.send(released);
        }
    });
}

async fn confirm(session: &Session, node: &Node, first: Option<Result<(), Error>>) -> Released {
    let mut answer = first;
    let mut may_be_done = false;
    let mut pause = Pause::default();
    loop {
        match answer {
            Some(Ok(())) => return Released::Confirmed,
            Some(Err(Error::NoNode)) if may_be_done => return Released::Confirmed,
            Some(Err(Error::NoNode)) => return Released::AlreadyGone,
            Some(Err(error)) => {
                let failure = session.judge(&error);
                if failure == Failure::Refused {
                    tracing::error!(node = %node.path, %error, "cannot delete a lock's node");
                }
                may_be_done |= failure == Failure::Unknown;
                pause.take().await;
                session.settled().await;
            }
            None => {
                session.connected().await;
            }
        }
        let delete = session.client.delete(&node.path, None);
        answer = Some(session.answer(delete).await);
    }
}
