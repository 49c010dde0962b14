use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fenced_core::{
    Answer, Fate, Fence, FencingSink, LockPath, Mode, Outcome, Request, SinkError, SinkId,
};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Value};

use crate::batch::milliseconds;
use crate::keys::Tags;
use crate::refusal::{self, Refused, Silent};
use crate::script::{self, Script};
use crate::{RedisWrite, outcome, replicas};

type Naming = dyn Fn(&LockPath) -> String + Send + Sync;

/// A connection that a [`RedisSink`] can use: of the `redis` crate's asynchronous ones, any that can
/// be cloned.
pub trait Connection: ConnectionLike + Clone + Send + Sync + 'static {}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Connection for C {}

/// A Redis server, or cluster, that refuses stale writes, reached over a connection of the user's.
///
/// Sections use [`RedisFenced`](crate::RedisFenced).
#[derive(Clone)]
#[must_use = "a sink does nothing by itself"]
pub struct RedisSink<C = MultiplexedConnection> {
    pub(crate) connection: C,
    pub(crate) tags: Tags,
    pub(crate) strict: bool,
    pub(crate) eviction_is_fatal: bool,
    pub(crate) keep_requests: Duration,
    pub(crate) replicas: Option<(usize, Duration)>,
    max_step: Option<i64>,
    answer_timeout: Duration,
    naming: Option<Arc<Naming>>,
    id: SinkId,
}

impl<C: Connection> RedisSink<C> {
    /// How long a request is kept with its answer unless told otherwise: a day.
    pub const KEEP_REQUESTS: Duration = Duration::from_secs(24 * 60 * 60);
    /// How long the server may take to answer unless told otherwise.
    pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

    /// A sink for the server that `connection` leads to. Sends nothing; call
    /// [`check`](Self::check) before the first use.
    pub fn new(connection: C) -> Self {
        Self {
            connection,
            tags: Tags::Without,
            strict: false,
            eviction_is_fatal: true,
            keep_requests: Self::KEEP_REQUESTS,
            replicas: None,
            max_step: None,
            answer_timeout: Self::ANSWER_TIMEOUT,
            naming: None,
            id: SinkId::unique(),
        }
    }

    /// Gives the keys of the sink this hash tag, and refuses every key without it: on a cluster,
    /// they are in one slot, and so on one node.
    ///
    /// Sinks with different tags know nothing of each other's fences and requests.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags = Tags::One(tag.into().into());
        self
    }

    /// Makes a hash tag from the name of each resource, so that a cluster spreads them over its
    /// nodes.
    ///
    /// A request is then known beside its resource only: its id may be used again elsewhere, and
    /// [`FencingSink::outcome`] has to be told [where](Request::sent_under) it was sent.
    ///
    /// ```
    /// # async fn doc(connection: redis::aio::MultiplexedConnection) {
    /// use fenced_redis::RedisSink;
    ///
    /// // For `/locks/inventory/4711`, keys such as `{4711}:count`.
    /// let last = |resource: &str| resource.rsplit('/').next().unwrap_or_default().to_owned();
    /// let stock = RedisSink::new(connection).tag_by(last);
    /// # }
    /// ```
    pub fn tag_by(mut self, tag: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.tags = Tags::By(Arc::new(tag));
        self
    }

    /// How long a request is kept with its answer. A repetition after that has another effect.
    ///
    /// All sinks of the same data should agree on it: [`FencingSink::outcome`] says
    /// [`Fate::Absent`] only where nothing can have expired.
    pub fn keep_requests(mut self, time: Duration) -> Self {
        self.keep_requests = time;
        self
    }

    /// Refuses, as [`SinkError::NotClaimed`], a write of a holder that did not claim before, so
    /// that nothing can be read before the fence is raised. Otherwise a first write claims too.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Refuses, as [`SinkError::Implausible`], a token that is further ahead of the newest one
    /// than this, so that a forged one cannot lock everybody out. No limit by default.
    ///
    /// A resource that was never claimed has no newest token, unless fences were
    /// [collected](Self::collect).
    pub fn max_step(mut self, tokens: u64) -> Self {
        self.max_step = Some(i64::try_from(tokens).unwrap_or(i64::MAX));
        self
    }

    /// How long the server may take to answer before the sink gives up: [`SinkError::Retry`], or
    /// [`SinkError::Ambiguous`] for a write. Ten seconds by default.
    ///
    /// The connection has a limit of its own, which is 500 ms unless told otherwise.
    pub fn answer_timeout(mut self, timeout: Duration) -> Self {
        self.answer_timeout = timeout;
        self
    }

    /// Lets a claim wait until so many replicas have it too, at most so long; if there are fewer,
    /// it is [`SinkError::Retry`], and the fence stays raised.
    ///
    /// This makes it less likely, not impossible, that a failover forgets a claim. While it waits,
    /// others that use the same connection do too. Not over a connection to a cluster.
    pub fn claim_replicas(mut self, replicas: usize, within: Duration) -> Self {
        self.replicas = Some((replicas, within));
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

    /// Lets [`check`](Self::check) warn of an eviction policy that can drop fences or requests,
    /// where it would refuse it: safe only where memory is sure never to run out.
    pub fn warn_of_eviction(mut self) -> Self {
        self.eviction_is_fatal = false;
        self
    }

    /// What every script that compares wants to know.
    pub(crate) fn write_fence(&self, command: &mut Cmd, fence: &Fence, claimed: bool) {
        let mine = fence.token.get();
        let plausible = self.max_step.map_or(0, |step| (mine - step).max(0));
        let kind = match fence.mode {
            Mode::Shared => "shared",
            _ => "exclusive",
        };
        let claimed = if claimed { "claimed" } else { "unclaimed" };
        let kept_for = milliseconds(self.keep_requests);
        let holder = format!("{kind} {claimed} {plausible} {kept_for}");
        command.arg(&fence.resource).arg(mine).arg(holder);
    }

    /// Runs a script in one round trip; the first time on a server, its text is sent too.
    pub(crate) async fn ask(&self, script: &Script, command: &Cmd) -> Result<Value, Refused> {
        match self.answer(command).await {
            Err(refused) if refused.is_unknown_script() => {
                self.answer(&script.in_full(command)).await
            }
            answer => answer,
        }
    }

    pub(crate) async fn answer(&self, command: &Cmd) -> Result<Value, Refused> {
        let mut connection = self.connection.clone();
        self.within_limit(command.query_async(&mut connection))
            .await
    }

    pub(crate) async fn within_limit<T>(
        &self,
        answer: impl Future<Output = redis::RedisResult<T>>,
    ) -> Result<T, Refused> {
        let limit = self.answer_timeout;
        match tokio::time::timeout(limit, answer).await {
            Ok(answer) => answer.map_err(Refused::Failed),
            Err(_) => Err(Refused::Silent(Silent(limit))),
        }
    }
}

#[async_trait]
impl<C: Connection> FencingSink for RedisSink<C> {
    type Write = RedisWrite;
    /// Of a batch, a JSON array; of a script, what it returned.
    type Answer = Answer;

    async fn claim(&self, fence: &Fence) -> Result<(), SinkError> {
        let place = self.tags.place(fence)?;
        let mut command = script::CLAIM.command(9, 256);
        command.arg(1).arg(place.fences);
        self.write_fence(&mut command, fence, false);
        match self.replicas {
            None => self.ask(&script::CLAIM, &command).await.map(drop),
            Some((wanted, within)) => {
                let claim = script::CLAIM.in_full(&command);
                return replicas::claim(self, fence, claim, wanted, within).await;
            }
        }
        .map_err(|refused| refusal::of_claim(refused, fence))
    }

    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        write: RedisWrite,
    ) -> Result<Outcome<Answer>, SinkError> {
        self.send(fence, Some(request), &write).await
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<Answer>, SinkError> {
        outcome::outcome(self, request).await
    }

    fn resource<'a>(&'a self, path: &'a LockPath) -> Cow<'a, str> {
        match &self.naming {
            Some(name) => name(path).into(),
            None => path.as_str().into(),
        }
    }

    fn id(&self) -> Option<SinkId> {
        Some(self.id)
    }
}

/// A connection's own form may show a password.
impl<C> fmt::Debug for RedisSink<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSink")
            .field("strict", &self.strict)
            .field("keep_requests", &self.keep_requests)
            .field("answer_timeout", &self.answer_timeout)
            .finish_non_exhaustive()
    }
}
