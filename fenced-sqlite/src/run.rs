use std::borrow::Borrow;
use std::future::Future;

use fenced_core::{Answer, Fenced, Outcome, Request, SinkError};
use rusqlite::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::SqliteSink;
use crate::writer::{Ran, Recorded};

/// Transactions of a section on its [`SqliteSink`].
///
/// Each begins by raising the fence, before anything is read in it, and runs on a thread of the
/// sink. Its body gets a connection that is inside the transaction and cannot end it; a panic of
/// the body is passed on to the caller.
///
/// ```
/// use fenced_core::{section, Request, SinkError};
/// use fenced_sqlite::{SqliteFenced, SqliteLocks, SqliteSink};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("shop.db");
/// let (locks, stock) = (SqliteLocks::open(&file).await?, SqliteSink::open(&file).await?);
/// let count = section(&locks, "/locks/inventory/4711")
///     .run(async |guard| {
///         let request = Request::new("delivery-17", &("4711", 5));
///         let counted = guard.fence(&stock).run(&request, |tx| {
///             tx.execute_batch("CREATE TABLE IF NOT EXISTS stock (sku TEXT PRIMARY KEY, count INTEGER)")
///                 .map_err(SinkError::backend)?;
///             tx.query_row(
///                 "INSERT INTO stock VALUES (?1, ?2)
///                  ON CONFLICT DO UPDATE SET count = count + excluded.count RETURNING count",
///                 ("4711", 5),
///                 |row| row.get::<_, i64>(0),
///             )
///             .map_err(SinkError::backend)
///         });
///         counted.await.map(|outcome| outcome.into_answer())
///     })
///     .await??;
/// assert_eq!(count, 5);
/// # Ok(())
/// # }
/// ```
pub trait SqliteFenced {
    /// Runs `body` in a transaction that also keeps `request` with its answer.
    ///
    /// A request that was applied before is answered from the file, without running `body`. If
    /// `body` fails, nothing of what it wrote is kept.
    ///
    /// # Errors
    /// What `body` returns, and as `E` what [`FencingSink::write`](fenced_core::FencingSink::write)
    /// would: [`SinkError::Stale`], [`SinkError::Busy`] with the process that is in a transaction,
    /// [`SinkError::Ambiguous`] when the lease ended before the answer came, or the disk failed at
    /// the commit.
    ///
    /// # Cancel safety
    /// A transaction whose future is dropped happens wholly or not at all.
    fn run<T, E, F>(
        self,
        request: impl Borrow<Request> + Send,
        body: F,
    ) -> impl Future<Output = Result<Outcome<T>, E>> + Send
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: From<SinkError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static;

    /// Runs `body` in a transaction that keeps no request: repeating it repeats its effect.
    ///
    /// For reading, and for what may be done twice.
    ///
    /// # Errors
    /// As [`run`](Self::run). What is [`SinkError::Ambiguous`] can only be found out from the data.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    fn transaction<T, E, F>(self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<SinkError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static;
}

impl SqliteFenced for Fenced<'_, SqliteSink> {
    async fn run<T, E, F>(
        self,
        request: impl Borrow<Request> + Send,
        body: F,
    ) -> Result<Outcome<T>, E>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: From<SinkError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let recorded = Recorded {
            request: request.borrow().clone(),
            keep: |value: &T| Answer::of(value),
            recall: |answer| answer.decode(),
        };
        transact(&self, Some(recorded), body).await
    }

    async fn transaction<T, E, F>(self, body: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<SinkError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        transact(&self, None, body).await.map(Outcome::into_answer)
    }
}

async fn transact<T, E, F>(
    fenced: &Fenced<'_, SqliteSink>,
    recorded: Option<Recorded<T>>,
    body: F,
) -> Result<Outcome<T>, E>
where
    T: Send + 'static,
    E: From<SinkError> + Send + 'static,
    F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
{
    let request = recorded.as_ref().map(|recorded| recorded.request.clone());
    let work = fenced.sink().transact(fenced.fence()?, recorded, body);
    let cut = |_| match &request {
        Some(request) => request.ambiguous(),
        None => SinkError::Ambiguous { request: None },
    };
    let ran = fenced.bounded(cut, work).await?;
    if let Ran::Done(_) | Ran::Failed { claimed: true, .. } = ran {
        fenced.mark_claimed();
    }
    match ran {
        Ran::Done(outcome) => Ok(outcome),
        Ran::Failed { error, .. } => Err(error),
    }
}
