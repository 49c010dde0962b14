//! Work on the thread of a session.

use std::future::Future;
use std::sync::Arc;

use fenced_core::Fence;
use tokio::sync::oneshot;

use super::ZkLocks;
use crate::session::Session;

/// Why a task has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Away {
    /// It was not begun.
    NoSession,
    /// The session ended meanwhile.
    Ended,
}

impl ZkLocks {
    /// Runs a task on the thread of a session; it goes on when its caller has gone.
    pub(crate) async fn on_thread<T, F>(
        &self,
        task: impl FnOnce(Arc<Session>) -> F,
    ) -> Result<T, Away>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let status = self.inner.hosts.status(0);
        let session = status.and_then(|it| it.session()).ok_or(Away::NoSession)?;
        let (sender, answer) = oneshot::channel();
        let task = task(Arc::clone(&session));
        session.spawn(async move {
            // Whoever asked may have gone.
            let _ = sender.send(task.await);
        });
        drop(session);
        answer.await.map_err(|_| Away::Ended)
    }

    /// The contender that has the token of this fence, if it is one of ours.
    pub(crate) fn held_node(&self, fence: &Fence) -> Option<Arc<str>> {
        let hosts = (0..).map_while(|host| self.inner.hosts.status(host));
        let sessions = hosts.filter_map(|status| status.session());
        let mut held = sessions.flat_map(|session| session.held());
        held.find(|(_, held)| {
            held.lease.token() == fence.token && held.lease.path().as_str() == fence.resource
        })
        .map(|(node, _)| node)
    }
}
