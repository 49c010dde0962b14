use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;

use crate::{Fence, LockPath, Request, SinkError};

/// A resource that refuses stale writes.
///
/// It keeps, durably and beside its data, the greatest token it has seen for each resource name,
/// and compares inside the resource, in the same atomic step as the write.
///
/// A section uses it through [`Fenced`](crate::Fenced) only. [`MemorySink`](crate::MemorySink) is
/// the shortest model for one of your own, which needs the crate `async-trait`; check it with
/// [`sink_conformance!`](crate::sink_conformance).
#[async_trait]
pub trait FencingSink: Send + Sync {
    /// What one write consists of.
    type Write: Send;
    /// What a write answers, kept with its request for those who ask again.
    type Answer: Send;

    /// Raises the fence of `fence.resource` to `fence.token`, before anything is read there.
    ///
    /// When it returns, no older holder can change the resource any more.
    ///
    /// # Errors
    /// [`SinkError::Stale`] if a newer token was seen; the resource is unchanged.
    async fn claim(&self, fence: &Fence) -> Result<(), SinkError>;

    /// Compares, writes, and remembers the request with its answer, in one atomic step, which
    /// goes in this order:
    ///
    /// 1. [`Request::digest`], which refuses a request that cannot be used.
    /// 2. Compare: a smaller token than the greatest seen is [`SinkError::Stale`], whatever became
    ///    of the request before. An equal or a greater one is accepted, and kept; that of a replay
    ///    need not be.
    /// 3. Look the request up by its id, which is one for all resources: answer what was applied
    ///    with the same digest as [`Outcome::Replayed`], refuse another digest as
    ///    [`SinkError::RequestMismatch`].
    /// 4. Write, and keep the request with its digest and answer. What is refused, or fails, keeps
    ///    nothing: the next holder may make the same request.
    ///
    /// A sink whose resource has transactions may use [`Fence::claimed`]: the holder has raised
    /// the fence there before, so that one that is missing or behind has been lost, which is
    /// [`SinkError::NotClaimed`]. Others can ignore it.
    ///
    /// # Errors
    /// [`SinkError::Stale`] and most others: nothing was changed. [`SinkError::Ambiguous`]: ask
    /// [`outcome`](Self::outcome).
    ///
    /// # Cancel safety
    /// A write whose future is dropped happened wholly or not at all.
    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        write: Self::Write,
    ) -> Result<Outcome<Self::Answer>, SinkError>;

    /// What became of a request. Needs no lease: a stale holder may ask.
    ///
    /// # Errors
    /// [`SinkError::RequestMismatch`] if the request's id was used for something else.
    async fn outcome(&self, request: &Request) -> Result<Fate<Self::Answer>, SinkError>;

    /// The name under which the sink keeps the fence of a lock: its path, unless told otherwise.
    fn resource<'a>(&'a self, path: &'a LockPath) -> Cow<'a, str> {
        path.as_str().into()
    }

    /// Which sink this is, so that a section claims a resource there only once. A sink without an
    /// identity is claimed each time, which is safe.
    fn id(&self) -> Option<SinkId> {
        None
    }
}

/// The identity of a sink within this process, which its clones share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SinkId(u64);

impl SinkId {
    /// One that no other sink has.
    #[must_use]
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The answer to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<A> {
    /// This call had the effect.
    Applied(A),
    /// An earlier call with the same request had it; this is the answer it got.
    Replayed(A),
}

impl<A> Outcome<A> {
    /// The answer, whoever got it first.
    pub fn into_answer(self) -> A {
        match self {
            Self::Applied(answer) | Self::Replayed(answer) => answer,
        }
    }

    /// Whether an earlier call had the effect.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        matches!(self, Self::Replayed(_))
    }
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the request may have had its effect"]
pub enum Fate<A> {
    /// It was applied, and this was the answer.
    Applied(A),
    /// It was not applied, and cannot be any more: a newer holder has claimed the resource. Only
    /// told if the request says [under which fence](Request::sent_under) it was sent.
    Absent,
    /// It was not applied yet, and may still be under way.
    Unknown,
}
