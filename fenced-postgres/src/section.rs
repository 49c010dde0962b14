use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;

use fenced_core::{Answer, Fence, Fenced, Outcome, Request, SinkError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Transaction;

use crate::PgSink;
use crate::commit::{commit, commit_unnamed};
use crate::open::Opened;
use crate::own::enter_within;
use crate::tx::PgTx;

/// What a section does with a [`PgSink`]; in the prelude.
///
/// The first transaction of a section claims the fence, and the others wait for its end; call
/// [`Fenced::claim`] first to run several at once.
pub trait PgFenced<'g> {
    /// Begins a fenced transaction, unless the request was answered before.
    ///
    /// BEGIN, the fence and the lookup of the request are one round trip. The id of a request is
    /// looked up in the whole database: let it name the operation too.
    ///
    /// # Errors
    /// [`SinkError::Stale`], which ends the lease; [`SinkError::Busy`] while an older holder's
    /// transaction is open; [`SinkError::RequestMismatch`]; others of [`SinkError`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves no transaction open.
    fn begin<A>(
        self,
        request: Request,
    ) -> impl Future<Output = Result<Begin<'g, A>, SinkError>> + Send
    where
        A: Serialize + DeserializeOwned + Send;

    /// Begins a fenced transaction that leaves no request behind: for reads, and for writes that
    /// may be repeated.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    ///
    /// # Cancel safety
    /// As [`begin`](Self::begin).
    fn enter(self) -> impl Future<Output = Result<EnteredTx<'g>, SinkError>> + Send;

    /// Takes the fence into a transaction of yours, as its first statement: from here to its end,
    /// no newer holder can claim. If it claims, call [`Fenced::mark_claimed`] once the transaction
    /// is committed.
    ///
    /// Prefer [`begin`](Self::begin): COMMIT of an aborted transaction rolls back, and
    /// tokio-postgres reports it as a success.
    ///
    /// # Errors
    /// As [`enter`](crate::enter), and those of a lease that is lost or suspect.
    ///
    /// # Cancel safety
    /// The transaction may have entered.
    fn enter_own(
        self,
        transaction: &Transaction<'_>,
    ) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Begins, runs `body`, and commits with its value as the answer; rolls back if it fails.
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin), of `body`, and of [`FencedTx::commit`].
    ///
    /// # Cancel safety
    /// As [`FencedTx::commit`].
    fn run<A, E, F>(self, request: Request, body: F) -> impl Future<Output = Result<Outcome<A>, E>>
    where
        A: Serialize + DeserializeOwned + Send,
        E: From<SinkError>,
        F: for<'t> AsyncFnOnce(&'t PgTx) -> Result<A, E>;
}

/// How a request begins.
#[expect(clippy::large_enum_variant, reason = "it is matched where it arrives")]
#[derive(Debug)]
#[must_use = "the request may have been answered before"]
pub enum Begin<'g, A> {
    /// It is new: here is its transaction.
    Fresh(FencedTx<'g, A>),
    /// It was applied before, and this was the answer.
    Replayed(A),
}

// What speaks to the server is boxed: a body's future keeps room for each of its calls.
impl<'g> PgFenced<'g> for Fenced<'g, PgSink> {
    async fn begin<A>(self, request: Request) -> Result<Begin<'g, A>, SinkError>
    where
        A: Serialize + DeserializeOwned + Send,
    {
        let fence = self.fence()?;
        let opening = Box::pin(self.sink().open(&fence, Some(&request)));
        Ok(match self.bounded(None, opening).await? {
            Opened::Replayed(answer) => Begin::Replayed(answer.decode()?),
            Opened::Fresh(tx) => Begin::Fresh(FencedTx {
                entered: EnteredTx {
                    fenced: self,
                    fence,
                    tx,
                },
                request,
                answer: PhantomData,
            }),
        })
    }

    async fn enter(self) -> Result<EnteredTx<'g>, SinkError> {
        let fence = self.fence()?;
        let opening = Box::pin(self.sink().open(&fence, None));
        match self.bounded(None, opening).await? {
            Opened::Fresh(tx) => Ok(EnteredTx {
                fenced: self,
                fence,
                tx,
            }),
            Opened::Replayed(_) => unreachable!("without a request there is no answer"),
        }
    }

    async fn enter_own(self, transaction: &Transaction<'_>) -> Result<(), SinkError> {
        let fence = self.fence()?;
        let bounds = &self.sink().bounds;
        let entering = Box::pin(enter_within(transaction.client(), &fence, bounds));
        self.bounded(None, entering).await
    }

    async fn run<A, E, F>(self, request: Request, body: F) -> Result<Outcome<A>, E>
    where
        A: Serialize + DeserializeOwned + Send,
        E: From<SinkError>,
        F: for<'t> AsyncFnOnce(&'t PgTx) -> Result<A, E>,
    {
        match self.begin(request).await? {
            Begin::Replayed(answer) => Ok(Outcome::Replayed(answer)),
            Begin::Fresh(tx) => {
                let answer = body(&tx).await?;
                Ok(tx.commit(answer).await?)
            }
        }
    }
}

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
        match fenced.bounded(Some(&self.request), committing).await? {
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

/// A transaction that holds the fence and has no request; made by [`PgFenced::enter`].
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

impl EnteredTx<'_> {
    /// Commits.
    ///
    /// # Errors
    /// [`SinkError::Ambiguous`] if the connection ended meanwhile, so that it may have been
    /// committed; nothing was with all others.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether it was committed.
    pub async fn commit(self) -> Result<(), SinkError> {
        let Self { fenced, fence, tx } = self;
        fenced.fence()?;
        let committing = Box::pin(commit_unnamed(tx, &fence));
        fenced.bounded(None, committing).await?;
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
