use std::borrow::Borrow;
use std::future::Future;

use fenced_core::{Fenced, Outcome, Request, SinkError};
use redis::Value;
use serde::de::DeserializeOwned;

use crate::script;
use crate::sink::{Connection, RedisSink};
use crate::{RedisWrite, refusal};

/// What a section does with a [`RedisSink`]; in the prelude.
///
/// Each call is one script, and so one atomic step and one round trip.
///
/// ```no_run
/// use fenced_core::{MemoryLocks, Request, SinkError, section};
/// use fenced_redis::{RedisBatch, RedisFenced, RedisSink};
///
/// # async fn sell(locks: MemoryLocks, stock: RedisSink) -> Result<(), Box<dyn std::error::Error>> {
/// let left = section(&locks, "/locks/inventory/4711")
///     .run(async |guard| {
///         let request = Request::new("sell/order-17", &("4711", 2));
///         let sell = RedisBatch::new().incr("{inventory}:4711", -2);
///         let [left] = guard.fence(&stock).run(request, sell).await?.into_answer();
///         Ok::<i64, SinkError>(left)
///     })
///     .await??;
/// # Ok(())
/// # }
/// ```
pub trait RedisFenced {
    /// Writes, and keeps the request with its answer: of a [`RedisBatch`](crate::RedisBatch) an
    /// array of numbers, of a [`RedisCall`](crate::RedisCall) what the script returned.
    ///
    /// The id of a request is looked up among all of the sink: let it name the operation too.
    ///
    /// # Errors
    /// As [`FencingSink::write`](fenced_core::FencingSink::write), and [`SinkError::Backend`] if
    /// the answer is no `T`, although it was written.
    ///
    /// # Cancel safety
    /// It happens wholly or not at all.
    fn run<T: DeserializeOwned + Send>(
        self,
        request: impl Borrow<Request> + Send,
        write: impl Into<RedisWrite> + Send,
    ) -> impl Future<Output = Result<Outcome<T>, SinkError>> + Send;

    /// Writes, and keeps no request: repeating it repeats its effect.
    ///
    /// A connection to a cluster repeats it by itself when one of its nodes goes away.
    ///
    /// # Errors
    /// As [`run`](Self::run). What is [`SinkError::Ambiguous`] can only be found out from the data.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    fn apply<T: DeserializeOwned + Send>(
        self,
        write: impl Into<RedisWrite> + Send,
    ) -> impl Future<Output = Result<T, SinkError>> + Send;

    /// The value of a key, read after the fence was raised: no older holder changes it any more.
    ///
    /// # Errors
    /// As [`Fenced::claim`].
    ///
    /// # Cancel safety
    /// The fence may have been raised.
    fn get(
        self,
        key: impl Into<Vec<u8>> + Send,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, SinkError>> + Send;

    /// The value of a field of a hash, read as by [`get`](Self::get).
    ///
    /// # Errors
    /// As [`Fenced::claim`].
    ///
    /// # Cancel safety
    /// The fence may have been raised.
    fn hget(
        self,
        key: impl Into<Vec<u8>> + Send,
        field: impl Into<Vec<u8>> + Send,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, SinkError>> + Send;
}

// What speaks to the server is boxed: a body's future keeps room for each of its calls.
impl<C: Connection> RedisFenced for Fenced<'_, RedisSink<C>> {
    async fn run<T: DeserializeOwned + Send>(
        self,
        request: impl Borrow<Request> + Send,
        write: impl Into<RedisWrite> + Send,
    ) -> Result<Outcome<T>, SinkError> {
        let request = request.borrow().clone();
        Ok(match self.write(&request, write.into()).await? {
            Outcome::Applied(answer) => Outcome::Applied(answer.decode()?),
            Outcome::Replayed(answer) => Outcome::Replayed(answer.decode()?),
        })
    }

    async fn apply<T: DeserializeOwned + Send>(
        self,
        write: impl Into<RedisWrite> + Send,
    ) -> Result<T, SinkError> {
        let (fence, write) = (self.fence()?, write.into());
        let sending = Box::pin(self.sink().send(&fence, None, &write));
        let cut = |_| SinkError::Ambiguous { request: None };
        let outcome = self.bounded(cut, sending).await?;
        self.mark_claimed();
        outcome.into_answer().decode()
    }

    async fn get(self, key: impl Into<Vec<u8>> + Send) -> Result<Option<Vec<u8>>, SinkError> {
        read(self, key.into(), None).await
    }

    async fn hget(
        self,
        key: impl Into<Vec<u8>> + Send,
        field: impl Into<Vec<u8>> + Send,
    ) -> Result<Option<Vec<u8>>, SinkError> {
        read(self, key.into(), Some(field.into())).await
    }
}

async fn read<C: Connection>(
    fenced: Fenced<'_, RedisSink<C>>,
    key: Vec<u8>,
    field: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, SinkError> {
    let (fence, sink) = (fenced.fence()?, fenced.sink());
    let reading = async {
        let place = sink.tags.place(&fence)?;
        place.check(&key)?;
        let mut command = script::READ.command(12, 256);
        command.arg(2).arg(&place.fences).arg(&key);
        sink.write_fence(&mut command, &fence, fence.claimed);
        command.arg(&field);
        let answer = sink.ask(&script::READ, &command).await;
        answer.map_err(|refused| refusal::of_claim(refused, &fence))
    };
    let value = fenced.bounded(SinkError::Lost, Box::pin(reading)).await?;
    fenced.mark_claimed();
    match value {
        Value::BulkString(value) => Ok(Some(value)),
        _ => Ok(None),
    }
}
