use std::borrow::Borrow;

use fenced_core::{Fenced, Opened, Outcome, Request, SinkError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::{PgConnection, PgPool};

use super::own::enter_within;
use super::{EnteredTx, FencedTx, SqlxTx};
use crate::{Begin, PgSink};

/// What a section does with a [`PgSink`] on a pool of `sqlx`; in the prelude.
///
/// The first transaction of a section claims the fence, and the others wait for its end; call
/// [`Fenced::claim`] first to run several at once.
pub trait SqlxFenced<'g> {
    /// Begins a fenced transaction, unless the request was answered before.
    ///
    /// BEGIN, the fence and the lookup of the request are one round trip.
    ///
    /// # Errors
    /// [`SinkError::Stale`], which ends the lease; [`SinkError::Busy`] while an older holder's
    /// transaction is open; [`SinkError::RequestMismatch`]; others of [`SinkError`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves no transaction open: the connection is closed.
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
    /// Prefer [`begin`](Self::begin): COMMIT of an aborted transaction rolls back, and `sqlx`
    /// reports it as a success.
    ///
    /// # Errors
    /// As [`enter`](super::enter), and those of a lease that is lost or suspect.
    ///
    /// # Cancel safety
    /// The transaction may have entered.
    fn enter_own(
        self,
        transaction: &mut PgConnection,
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
        F: for<'t> AsyncFnOnce(&'t mut SqlxTx) -> Result<A, E>;
}

impl<'g> SqlxFenced<'g> for Fenced<'g, PgSink<PgPool>> {
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

    async fn enter_own(self, transaction: &mut PgConnection) -> Result<(), SinkError> {
        let fence = self.fence()?;
        let entering = Box::pin(enter_within(transaction, &fence, &self.sink().bounds));
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
        F: for<'t> AsyncFnOnce(&'t mut SqlxTx) -> Result<A, E>,
    {
        match self.begin(request).await? {
            Begin::Replayed(answer) => Ok(Outcome::Replayed(answer)),
            Begin::Fresh(mut tx) => {
                let answer = body(&mut tx).await?;
                Ok(tx.commit(answer).await?)
            }
        }
    }
}
