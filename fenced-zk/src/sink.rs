//! Nodes of ZooKeeper itself as what is written.

mod attempt;
mod collect;
mod found;
mod record;
mod section;
mod standing;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use fenced_core::{
    Answer, Fate, Fence, FencingSink, FencingToken, Outcome, Request, SinkError, SinkId,
};

use crate::ZkLocks;
use crate::locks::Away;
use attempt::Attempt;

pub use section::ZkFenced;
pub use write::ZkWrite;

/// Nodes of the ensemble that refuse stale writes.
///
/// A write is one transaction of ZooKeeper's. It checks the fence of the resource, which is kept
/// in `<root>/fenced/sink/fences`, and that the contender whose token it carries is still there, as
/// far as this process holds it; it changes the nodes, and keeps the request with its answer in
/// `<root>/fenced/sink/requests`, until [`collect`](Self::collect) removes it. What others read in the nodes is the data and nothing else.
///
/// The answer to a write is the version of each node after it, and -1 for one that was deleted.
///
/// ```no_run
/// use fenced_core::{Request, SinkError, section};
/// use fenced_zk::{ZkFenced, ZkLocks, ZkWrite};
///
/// # async fn example(locks: ZkLocks) -> Result<(), Box<dyn std::error::Error>> {
/// let config = locks.sink();
/// section(&locks, "/locks/config")
///     .run(async |guard| {
///         let config = guard.fence(&config);
///         let now = config.read("/config/limits").await?;
///         let next = [now.unwrap_or_default().as_slice(), b"+1"].concat();
///         let put = ZkWrite::put("/config/limits", next);
///         config.write(Request::new("change-17", "+1"), put).await
///     })
///     .await??;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a sink does nothing by itself"]
pub struct ZkSink {
    locks: ZkLocks,
    id: SinkId,
}

impl ZkLocks {
    /// The nodes below the same root as a sink.
    pub fn sink(&self) -> ZkSink {
        ZkSink {
            locks: self.clone(),
            id: SinkId::unique(),
        }
    }
}

impl ZkSink {
    /// Removes the requests that were made under tokens below `floor`; says how many. Fences stay.
    ///
    /// Choose a floor that is older than every request that may still be repeated: such a one would
    /// be applied again.
    ///
    /// # Errors
    /// [`SinkError::Retry`] and [`SinkError::Backend`]; some may have been removed.
    ///
    /// # Cancel safety
    /// What was begun goes on.
    pub async fn collect(&self, floor: FencingToken) -> Result<u64, SinkError> {
        let collecting = self
            .locks
            .on_thread(|session| async move { collect::collect(&session, floor).await });
        collecting.await.unwrap_or_else(|_| Err(no_session()))
    }

    async fn run(&self, attempt: Attempt) -> Result<Outcome<Answer>, SinkError> {
        let lost_answer = attempt.unanswered();
        let attempt = Arc::new(attempt);
        let done = self
            .locks
            .on_thread(|session| async move { attempt.run(&session).await });
        match done.await {
            Ok(outcome) => outcome,
            Err(Away::NoSession) => Err(no_session()),
            Err(Away::Ended) => Err(lost_answer),
        }
    }

    fn attempt(&self, fence: &Fence) -> Result<Attempt, SinkError> {
        Attempt::new(fence, self.locks.held_node(fence))
    }
}

#[async_trait]
impl FencingSink for ZkSink {
    type Write = ZkWrite;
    type Answer = Answer;

    async fn claim(&self, fence: &Fence) -> Result<(), SinkError> {
        self.run(self.attempt(fence)?).await.map(|_| ())
    }

    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        write: ZkWrite,
    ) -> Result<Outcome<Answer>, SinkError> {
        self.run(self.attempt(fence)?.write(request, write)?).await
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<Answer>, SinkError> {
        request.digest()?;
        let request = request.clone();
        let asking = self
            .locks
            .on_thread(|session| async move { record::fate(&session, &request).await });
        asking.await.unwrap_or_else(|_| Err(no_session()))
    }

    fn id(&self) -> Option<SinkId> {
        Some(self.id)
    }
}

fn no_session() -> SinkError {
    SinkError::Retry("there is no session with the ensemble right now".into())
}
