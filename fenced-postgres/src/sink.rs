use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{Object, Pool, PoolError};
use fenced_core::{
    Answer, Fate, Fence, FencingSink, LockPath, Opened, Outcome, Request, SinkError, SinkId,
    Statement,
};
use tokio_postgres::IsolationLevel;

use crate::bounds::{Bounds, Silent, answered};
use crate::commit::commit;
use crate::refusal::{self, NoConnection};
use crate::statements::execute_all;
use crate::told::Told as _;
use crate::{blockers, outcome, own};

type Naming = dyn Fn(&LockPath) -> String + Send + Sync;

/// A PostgreSQL database that refuses stale writes, reached over a pool of the user's.
///
/// The schema has to be there: [`migrate`](crate::migrate) makes it. Sections use
/// [`PgFenced::begin`](crate::PgFenced::begin); the list of statements that
/// [`FencingSink::write`] takes is for those who do not know which sink they have. It is answered
/// with the number of rows that each of them changed or read.
///
/// The pool is one of `deadpool-postgres`, or with the feature `sqlx` one of `sqlx`.
#[derive(Clone)]
#[must_use = "a sink does nothing by itself"]
pub struct PgSink<P = Pool> {
    pub(crate) pool: P,
    pub(crate) begin_sql: &'static str,
    pub(crate) bounds: Bounds,
    naming: Option<Arc<Naming>>,
    id: SinkId,
}

impl PgSink {
    /// How long a transaction waits for a lock unless told otherwise.
    pub const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
    /// How long a transaction may be idle unless told otherwise.
    pub const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(5);
    /// How long a free connection of the pool is awaited, if the pool has no limit of its own.
    pub const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

    /// How long the server may take to answer unless told otherwise.
    pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
}

impl<P> PgSink<P> {
    /// A sink for the database that `pool` connects to. Sends nothing.
    pub fn new(pool: P) -> Self {
        Self {
            pool,
            begin_sql: begin(IsolationLevel::ReadCommitted),
            bounds: Bounds::default(),
            naming: None,
            id: SinkId::unique(),
        }
    }

    /// How long a claim waits for an older holder's transaction, and any statement of a fenced
    /// transaction for a lock, before it fails with [`SinkError::Busy`]. Three seconds by default.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.bounds.wait_for_lock(timeout);
        self
    }

    /// How long a fenced transaction may be idle before the server ends it, since it holds up the
    /// claims of newer holders. Five seconds by default.
    pub fn idle_in_transaction_timeout(mut self, timeout: Duration) -> Self {
        self.bounds.stay_idle(timeout);
        self
    }

    /// How long the server may take, beside waiting for locks, to answer what the sink itself sends,
    /// before its connection is given up: [`SinkError::Retry`], or [`SinkError::Ambiguous`] for a
    /// commit. Thirty seconds by default.
    ///
    /// Statements of yours are bounded by what you ask of the server and of the network, such as
    /// `statement_timeout` and `tcp_user_timeout`.
    pub fn answer_timeout(mut self, timeout: Duration) -> Self {
        self.bounds.wait_for_answer(timeout);
        self
    }

    /// The isolation level of the transactions; `READ COMMITTED` by default.
    ///
    /// The stricter ones answer [`SinkError::Retry`] more often, also to the newest holder when it
    /// waited for an older one, and do not replace the fence.
    pub fn isolation_level(mut self, level: IsolationLevel) -> Self {
        self.begin_sql = begin(level);
        self
    }

    /// Refuses, as [`SinkError::Implausible`], a token that is further ahead of the newest one
    /// than this, so that a forged one cannot lock everybody out. No limit by default.
    ///
    /// A resource that was never claimed has no newest token, unless rows were
    /// [collected](crate).
    pub fn max_step(mut self, tokens: u64) -> Self {
        self.bounds.max_step = Some(i64::try_from(tokens).unwrap_or(i64::MAX));
        self
    }

    /// Names the fence of a lock other than by its path.
    ///
    /// Two locks must not share a name: their tokens would refuse each other.
    pub fn resource_by(
        mut self,
        name: impl Fn(&LockPath) -> String + Send + Sync + 'static,
    ) -> Self {
        self.naming = Some(Arc::new(name));
        self
    }

    pub(crate) fn resource_of<'a>(&'a self, path: &'a LockPath) -> Cow<'a, str> {
        match &self.naming {
            Some(name) => name(path).into(),
            None => path.as_str().into(),
        }
    }

    pub(crate) fn same_as(&self) -> SinkId {
        self.id
    }
}

impl PgSink {
    /// A connection, in a bounded time.
    pub(crate) async fn connection(&self) -> Result<Object, SinkError> {
        let limit = Self::CONNECTION_TIMEOUT;
        tokio::time::timeout(limit, self.pool.get())
            .await
            .map_err(|_| SinkError::Retry(NoConnection(limit).into()))?
            .map_err(|error| match error {
                PoolError::Backend(error) => SinkError::Retry(error.into_cause()),
                PoolError::Timeout(_) => SinkError::Retry(error.into()),
                error => SinkError::backend(error),
            })
    }
}

fn begin(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::RepeatableRead => "BEGIN ISOLATION LEVEL REPEATABLE READ",
        IsolationLevel::Serializable => "BEGIN ISOLATION LEVEL SERIALIZABLE",
        _ => "BEGIN ISOLATION LEVEL READ COMMITTED",
    }
}

/// An error is told before its statement has let go of its place in the queue for a lock, where it
/// would be taken for the one that holds it.
async fn stopped_waiting(client: &Object) -> Result<(), SinkError> {
    client.batch_execute("").await.map_err(refusal::failed)
}

/// A connection that stays silent does not go back to the pool.
pub(crate) fn heard<T>(
    client: Object,
    answer: Result<Result<T, SinkError>, Silent>,
) -> Result<T, SinkError> {
    answer.unwrap_or_else(|silent| {
        drop(Object::take(client));
        Err(silent.into())
    })
}

#[async_trait]
impl FencingSink for PgSink {
    type Write = Vec<Statement>;
    type Answer = Answer;

    async fn claim(&self, fence: &Fence) -> Result<(), SinkError> {
        let claimed = async {
            let client = self.connection().await?;
            let claiming = own::claim_within(&client, fence, &self.bounds);
            let answer = answered(self.bounds.answer(), claiming).await;
            if let Ok(Err(SinkError::Busy { .. })) = answer {
                stopped_waiting(&client).await?;
            }
            heard(client, answer)
        };
        blockers::named(self, fence, claimed.await).await
    }

    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        write: Vec<Statement>,
    ) -> Result<Outcome<Answer>, SinkError> {
        match self.open(fence, Some(request)).await? {
            Opened::Replayed(answer) => Ok(Outcome::Replayed(answer)),
            Opened::Fresh(tx) => {
                let answer = Answer::of(&execute_all(&tx, &write).await?)?;
                commit(tx, fence, request, answer).await
            }
        }
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<Answer>, SinkError> {
        outcome::outcome(self, request).await
    }

    fn resource<'a>(&'a self, path: &'a LockPath) -> Cow<'a, str> {
        self.resource_of(path)
    }

    fn id(&self) -> Option<SinkId> {
        Some(self.same_as())
    }
}

// A pool's own form may show a password.
impl<P> fmt::Debug for PgSink<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgSink")
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}
