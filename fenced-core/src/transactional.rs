use async_trait::async_trait;

use crate::{Answer, Fence, FencingSink, Outcome, Request, SinkError};

/// A sink whose fence can be held while somebody else's code runs: the handler of a server, the
/// consumer of a queue.
///
/// The [`Fence`] has travelled there, in a message that a section sent. Between
/// [`open`](Self::open) and [`commit`](Self::commit) no newer holder can claim.
///
/// ```
/// use fenced_core::{Answer, Fence, Opened, Request, SinkError, TransactionalSink};
///
/// async fn consume<S: TransactionalSink>(sink: &S, fence: Fence, id: &str) -> Result<(), SinkError> {
///     match sink.open(&fence, Some(&Request::new(id, "the message"))).await? {
///         Opened::Fresh(transaction) => {
///             // … what the message asks for, in `transaction` …
///             sink.commit(transaction, Answer::of("done")?).await?;
///         }
///         Opened::Replayed(_) => {} // this very message was consumed before
///     }
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait TransactionalSink: FencingSink<Answer = Answer> {
    /// What holds the fence. Dropping it gives the fence up, and the request stays unanswered; what
    /// was done in it is undone if the sink can.
    type Transaction: Send + Sync + 'static;

    /// Compares, and raises the fence unless it was [claimed](Fence::claimed) before; then looks
    /// the request up.
    ///
    /// # Errors
    /// As [`FencingSink::write`].
    ///
    /// # Cancel safety
    /// Dropping the future holds nothing; the fence may have been raised.
    async fn open(
        &self,
        fence: &Fence,
        request: Option<&Request>,
    ) -> Result<Opened<Self::Transaction>, SinkError>;

    /// Makes the effect last, keeps `answer` for those who repeat the request, and gives the fence
    /// up.
    ///
    /// # Errors
    /// [`SinkError::Ambiguous`] if it may have been committed; nothing was with all others.
    ///
    /// # Cancel safety
    /// Dropping the future leaves open whether it was committed.
    async fn commit(
        &self,
        transaction: Self::Transaction,
        answer: Answer,
    ) -> Result<Outcome<Answer>, SinkError>;

    /// Ends a transaction in which nothing was done, and gives the fence up.
    fn give_up(&self, transaction: Self::Transaction) {
        drop(transaction);
    }

    /// Whether dropping a transaction undoes what was done in it.
    fn undoes(&self) -> bool {
        true
    }
}

/// How a transaction begins.
#[derive(Debug)]
#[must_use = "the request may have been answered before"]
pub enum Opened<T> {
    /// It holds the fence.
    Fresh(T),
    /// It was not needed: the request was applied before, and this was the answer.
    Replayed(Answer),
}
