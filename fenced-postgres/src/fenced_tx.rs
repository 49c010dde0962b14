use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use fenced_core::{Answer, Fence, Fenced, Outcome, Request, SinkError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::PgSink;
use crate::commit::{commit, commit_unnamed};
use crate::tx::PgTx;

/// The transaction of one request, which holds the fence; it derefs to
/// [`Client`](tokio_postgres::Client) for statements.
///
/// # Cancel safety
/// Dropping it rolls back, before anybody else's statement on its connection.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct FencedTx<'g, A> {
    entered: EnteredTx<'g>,
    request: Request,
    answer: PhantomData<fn(A) -> A>,
}

impl<'g, A> FencedTx<'g, A> {
    pub(crate) fn new(entered: EnteredTx<'g>, request: Request) -> Self {
        Self {
            entered,
            request,
            answer: PhantomData,
        }
    }
}

impl<A: Serialize + DeserializeOwned + Send> FencedTx<'_, A> {
    /// Commits, and keeps `answer` for those who repeat the request, in one round trip.
    ///
    /// # Errors
    /// [`SinkError::Ambiguous`] if the connection or the lease ended meanwhile, so that it may
    /// have been committed; nothing was with all others.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether it was committed:
    /// [`outcome`](fenced_core::FencingSink::outcome) tells.
    pub async fn commit(self, answer: A) -> Result<Outcome<A>, SinkError> {
        let EnteredTx { fenced, fence, tx } = self.entered;
        // Nothing is sent under a lease that is lost or suspect.
        fenced.fence()?;
        let stored = Answer::of(&answer)?;
        let committing = Box::pin(commit(tx, &fence, &self.request, stored));
        let cut = |_| self.request.ambiguous();
        match fenced.bounded(cut, committing).await? {
            Outcome::Applied(_) => {
                fenced.mark_claimed();
                Ok(Outcome::Applied(answer))
            }
            Outcome::Replayed(stored) => Ok(Outcome::Replayed(stored.decode()?)),
        }
    }

    /// Rolls back.
    pub fn rollback(self) {}
}

impl<A> Deref for FencedTx<'_, A> {
    type Target = PgTx;

    fn deref(&self) -> &PgTx {
        &self.entered.tx
    }
}

impl<A> fmt::Debug for FencedTx<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedTx")
            .field("fence", &self.entered.fence)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// A transaction that holds the fence and has no request; made by
/// [`PgFenced::enter`](crate::PgFenced::enter).
///
/// # Cancel safety
/// Dropping it rolls back, before anybody else's statement on its connection.
#[derive(Debug)]
#[must_use = "a transaction that is dropped is rolled back"]
pub struct EnteredTx<'g> {
    fenced: Fenced<'g, PgSink>,
    fence: Fence,
    tx: PgTx,
}

impl<'g> EnteredTx<'g> {
    pub(crate) fn new(fenced: Fenced<'g, PgSink>, fence: Fence, tx: PgTx) -> Self {
        Self { fenced, fence, tx }
    }

    /// Commits.
    ///
    /// # Errors
    /// [`SinkError::Ambiguous`] if the connection or the lease ended meanwhile, so that it may have been
    /// committed; nothing was with all others.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether it was committed.
    pub async fn commit(self) -> Result<(), SinkError> {
        let Self { fenced, fence, tx } = self;
        fenced.fence()?;
        let committing = Box::pin(commit_unnamed(tx, &fence));
        let cut = |_| SinkError::Ambiguous { request: None };
        fenced.bounded(cut, committing).await?;
        fenced.mark_claimed();
        Ok(())
    }

    /// Rolls back.
    pub fn rollback(self) {}
}

impl Deref for EnteredTx<'_> {
    type Target = PgTx;

    fn deref(&self) -> &PgTx {
        &self.tx
    }
}
