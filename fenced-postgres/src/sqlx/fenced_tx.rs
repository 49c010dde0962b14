use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use fenced_core::{Answer, Fence, Fenced, Outcome, Request, SinkError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::PgPool;

use super::commit::{commit, commit_unnamed};
use super::tx::SqlxTx;
use crate::PgSink;

/// The transaction of one request, which holds the fence; it derefs to [`SqlxTx`] for statements.
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
    pub(super) fn new(entered: EnteredTx<'g>, request: Request) -> Self {
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
        let (stored, request) = (Answer::of(&answer)?, &self.request);
        let bounds = &fenced.sink().bounds;
        let committing = Box::pin(commit(tx, bounds, &fence, request, stored));
        match fenced.bounded(|_| request.ambiguous(), committing).await? {
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
    type Target = SqlxTx;

    fn deref(&self) -> &SqlxTx {
        &self.entered.tx
    }
}

impl<A> DerefMut for FencedTx<'_, A> {
    fn deref_mut(&mut self) -> &mut SqlxTx {
        &mut self.entered.tx
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
/// [`SqlxFenced::enter`](super::SqlxFenced::enter).
///
/// # Cancel safety
/// Dropping it rolls back, before anybody else's statement on its connection.
#[derive(Debug)]
#[must_use = "a transaction that is dropped is rolled back"]
pub struct EnteredTx<'g> {
    fenced: Fenced<'g, PgSink<PgPool>>,
    fence: Fence,
    tx: SqlxTx,
}

impl<'g> EnteredTx<'g> {
    pub(super) fn new(fenced: Fenced<'g, PgSink<PgPool>>, fence: Fence, tx: SqlxTx) -> Self {
        Self { fenced, fence, tx }
    }

    /// Commits.
    ///
    /// # Errors
    /// [`SinkError::Ambiguous`] if the connection or the lease ended meanwhile, so that it may
    /// have been committed; nothing was with all others.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether it was committed.
    pub async fn commit(self) -> Result<(), SinkError> {
        let Self { fenced, fence, tx } = self;
        fenced.fence()?;
        let committing = Box::pin(commit_unnamed(tx, &fenced.sink().bounds, &fence));
        let cut = |_| SinkError::Ambiguous { request: None };
        fenced.bounded(cut, committing).await?;
        fenced.mark_claimed();
        Ok(())
    }

    /// Rolls back.
    pub fn rollback(self) {}
}

impl Deref for EnteredTx<'_> {
    type Target = SqlxTx;

    fn deref(&self) -> &SqlxTx {
        &self.tx
    }
}

impl DerefMut for EnteredTx<'_> {
    fn deref_mut(&mut self) -> &mut SqlxTx {
        &mut self.tx
    }
}
