use std::borrow::Borrow;
use std::future::Future;

use fenced_core::{Fenced, Opened, Outcome, Request, SinkError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Transaction;

use crate::own::enter_within;
use crate::tx::PgTx;
use crate::{EnteredTx, FencedTx, PgSink};

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
        request: impl Borrow<Request> + Send,
    ) -> impl Future<Output = Result<Begin<FencedTx<'g, A>, A>, SinkError>> + Send
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
    fn run<A, E, F>(
        self,
        request: impl Borrow<Request> + Send,
        body: F,
    ) -> impl Future<Output = Result<Outcome<A>, E>>
    where
        A: Serialize + DeserializeOwned + Send,
        E: From<SinkError>,
        F: for<'t> AsyncFnOnce(&'t PgTx) -> Result<A, E>;
}

/// How a request begins.
#[derive(Debug)]
#[must_use = "the request may have been answered before"]
pub enum Begin<T, A> {
    /// It is new: here is its transaction.
    Fresh(T),
    /// It was applied before, and this was the answer.
    Replayed(A),
}

// What speaks to the server is boxed: a body's future keeps room for each of its calls.
impl<'g> PgFenced<'g> for Fenced<'g, PgSink> {
    async fn begin<A>(
        self,
        request: impl Borrow<Request> + Send,
    ) -> Result<Begin<FencedTx<'g, A>, A>, SinkError>
    where
        A: Serialize + DeserializeOwned + Send,
    {
        let (fence, request) = (self.fence()?, request.borrow().clone());
        let opening = Box::pin(self.sink().open(&fence, Some(&request)));
        Ok(match self.bounded(SinkError::Lost, opening).await? {
            Opened::Replayed(answer) => Begin::Replayed(answer.decode()?),
            Opened::Fresh(tx) => {
                Begin::Fresh(FencedTx::new(EnteredTx::new(self, fence, tx), request))
            }
        })
    }

    async fn enter(self) -> Result<EnteredTx<'g>, SinkError> {
        let fence = self.fence()?;
        let opening = Box::pin(self.sink().open(&fence, None));
        match self.bounded(SinkError::Lost, opening).await? {
            Opened::Fresh(tx) => Ok(EnteredTx::new(self, fence, tx)),
            Opened::Replayed(_) => unreachable!("without a request there is no answer"),
        }
    }

    async fn enter_own(self, transaction: &Transaction<'_>) -> Result<(), SinkError> {
        let fence = self.fence()?;
        let bounds = &self.sink().bounds;
        let entering = Box::pin(enter_within(transaction.client(), &fence, bounds));
        self.bounded(SinkError::Lost, entering).await
    }

    async fn run<A, E, F>(
        self,
        request: impl Borrow<Request> + Send,
        body: F,
    ) -> Result<Outcome<A>, E>
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
