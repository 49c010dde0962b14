//! What operators do: look at queues, break locks, rebase tokens.

use std::future::Future;
use std::sync::Arc;

use fenced_core::{FencingToken, LockPath};

use super::ZkLocks;
use crate::session::Session;
use crate::{Contender, InspectError, Inspection, inspect, rebase};

impl ZkLocks {
    /// Looks at the queue of a lock, without standing in it.
    ///
    /// # Errors
    /// [`InspectError::NoSession`] and [`InspectError::Failed`].
    ///
    /// # Cancel safety
    /// Nothing is changed.
    pub async fn inspect(&self, path: &LockPath) -> Result<Inspection, InspectError> {
        let lock = path.clone();
        self.on_session(path.as_str(), |session| async move {
            inspect::inspect(&session, &lock).await
        })
        .await
    }

    /// Removes a contender of a lock, be it ours or not: the very one that
    /// the transaction [`czxid`](crate::Contender::czxid) created, and no other.
    ///
    /// For a holder that is dead although its session is not. If it lives, it learns that it has
    /// lost the lock, and the resources refuse what it still sends. Who, when, which and why is
    /// written below `<root>/fenced/audit` in the same transaction, and shown by
    /// [`inspect`](Self::inspect).
    ///
    /// # Errors
    /// [`InspectError::NotThere`], [`InspectError::NoSession`] and [`InspectError::Failed`].
    ///
    /// # Cancel safety
    /// What was sent is done.
    pub async fn break_lock(
        &self,
        path: &LockPath,
        czxid: i64,
        reason: &str,
    ) -> Result<Contender, InspectError> {
        let (lock, reason) = (path.clone(), reason.to_owned());
        self.on_session(path.as_str(), |session| async move {
            inspect::break_lock(&session, &lock, czxid, &reason).await
        })
        .await
    }

    /// Asks a contender of a lock, be it ours or not, to give the lock back: the very one that the
    /// transaction [`czxid`](crate::Contender::czxid) created.
    ///
    /// What it does then is up to it. Ours sees it by
    /// [`revoke_requested`](fenced_core::FencedGuard::revoke_requested), a mutex of Curator's by
    /// the listener that made it revocable; other recipes do not look. What asks takes the place
    /// of the contender's label.
    ///
    /// # Errors
    /// [`InspectError::NotThere`], [`InspectError::NoSession`] and [`InspectError::Failed`].
    ///
    /// # Cancel safety
    /// What was sent is done.
    pub async fn ask_to_release(
        &self,
        path: &LockPath,
        czxid: i64,
    ) -> Result<Contender, InspectError> {
        let lock = path.clone();
        self.on_session(path.as_str(), |session| async move {
            inspect::ask_to_release(&session, &lock, czxid).await
        })
        .await
    }

    /// Makes all tokens granted from now on newer than `above`; returns what is added to each
    /// transaction id from now on.
    ///
    /// For an ensemble that has lost its data: it counts its transactions anew, so that every
    /// holder would be refused by the resources, and is told
    /// [`LockError::TokenRegressed`](fenced_core::LockError::TokenRegressed). `above` is the newest
    /// token that any resource has seen. The number is kept in `<root>/fenced/base`, is never
    /// lowered, and reaches every process before its next grant. Who, when and why is written below
    /// `<root>/fenced/audit` in the same transaction, and shown by [`inspect`](Self::inspect).
    ///
    /// # Errors
    /// [`InspectError::Failed`], also if `above` is more than half of what a token can be, and
    /// [`InspectError::NoSession`].
    ///
    /// # Cancel safety
    /// What was sent is done.
    pub async fn rebase(&self, above: FencingToken, reason: &str) -> Result<i64, InspectError> {
        let reason = reason.to_owned();
        let node = self.inner.shared.settings.base_node();
        self.on_session(&node, |session| async move {
            rebase::rebase(&session, above, &reason).await
        })
        .await
    }

    /// Runs a task on the thread of a session, within the connect timeout.
    async fn on_session<T, F>(
        &self,
        node: &str,
        task: impl FnOnce(Arc<Session>) -> F,
    ) -> Result<T, InspectError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, InspectError>> + Send + 'static,
    {
        let limit = self.inner.shared.settings.connect_timeout;
        let done = self.on_thread(|session| tokio::time::timeout(limit, task(session)));
        match done.await {
            Ok(done) => done.unwrap_or_else(|_| Err(InspectError::too_late(node, limit))),
            Err(_) => Err(InspectError::NoSession),
        }
    }
}
