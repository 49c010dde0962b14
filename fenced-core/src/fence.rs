use std::borrow::Borrow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::race::{Race, Raced};
use crate::state::LeaseState;
use crate::{FencingSink, FencingToken, Loss, Mode, Outcome, Request, SinkError};

/// What a resource compares: whose token, at which resource.
///
/// It is plain data that can travel to a gateway or to a worker of another service, which check it
/// with the same sinks; the token travels as text.
///
/// ```
/// use fenced_core::{Fence, FencingToken};
///
/// let fence = Fence::new("/locks/inventory/4711", FencingToken::try_from(33_i64)?);
/// let json = serde_json::to_string(&fence)?;
/// assert_eq!(json, r#"{"resource":"/locks/inventory/4711","token":"33","mode":"exclusive","claimed":false}"#);
/// assert_eq!(serde_json::from_str::<Fence>(&json)?, fence);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fence {
    /// The name of the resource.
    pub resource: String,
    /// The holder's token.
    pub token: FencingToken,
    /// Whether other holders of the same kind are admitted.
    pub mode: Mode,
    /// Whether this holder has raised the fence there before.
    pub claimed: bool,
}

impl Fence {
    /// An exclusive holder's fence that was not raised yet.
    pub fn new(resource: impl Into<String>, token: FencingToken) -> Self {
        Self {
            resource: resource.into(),
            token,
            mode: Mode::Exclusive,
            claimed: false,
        }
    }

    /// Says whether the fence was raised before.
    #[must_use]
    pub fn claimed(mut self, claimed: bool) -> Self {
        self.claimed = claimed;
        self
    }
}

/// A sink as one section may use it; made by [`FencedGuard::fence`](crate::FencedGuard::fence).
///
/// Every use is refused while the lease is suspect or lost, before a byte is sent. While it
/// exists, the guard cannot be released.
#[must_use = "nothing is claimed or written yet"]
pub struct Fenced<'g, S: ?Sized> {
    lease: &'g LeaseState,
    sink: &'g S,
}

impl<'g, S: FencingSink + ?Sized> Fenced<'g, S> {
    /// How long an answer is still awaited that was under way when the lease was lost.
    ///
    /// Only bodies with `on_lost = "finish"` get to see it.
    pub const LAST_ANSWER: Duration = Duration::from_secs(1);

    pub(crate) fn new(lease: &'g LeaseState, sink: &'g S) -> Self {
        Self { lease, sink }
    }

    /// The sink.
    #[must_use]
    pub fn sink(&self) -> &'g S {
        self.sink
    }

    /// The fence to show to the resource.
    ///
    /// # Errors
    /// [`SinkError::Lost`] and [`SinkError::Suspect`], when nothing may be sent.
    pub fn fence(&self) -> Result<Fence, SinkError> {
        self.lease.check()?;
        let resource = self.resource();
        let claimed = self.sink.id().is_some_and(|sink| {
            let claims = self.lease.claims();
            claims
                .iter()
                .any(|(at, name)| *at == sink && *name == resource)
        });
        Ok(Fence::new(resource, self.lease.token()).claimed(claimed))
    }

    /// Raises the fence, so that what is read from now on cannot be changed by an older holder.
    ///
    /// A section over several resources claims all of them before its first read.
    ///
    /// # Errors
    /// As [`FencingSink::claim`], [`SinkError::Lost`] and [`SinkError::Suspect`].
    pub async fn claim(self) -> Result<(), SinkError> {
        let fence = self.fence()?;
        self.bounded(SinkError::Lost, self.sink.claim(&fence))
            .await?;
        self.mark_claimed();
        Ok(())
    }

    /// Writes, if no newer holder has been there.
    ///
    /// # Errors
    /// As [`FencingSink::write`], [`SinkError::Lost`] and [`SinkError::Suspect`].
    pub async fn write(
        self,
        request: impl Borrow<Request>,
        write: S::Write,
    ) -> Result<Outcome<S::Answer>, SinkError> {
        let (fence, request) = (self.fence()?, request.borrow());
        let written = self.sink.write(&fence, request, write);
        let outcome = self.bounded(|_| request.ambiguous(), written).await?;
        // A replay may have been rolled back, and the fence with it.
        if !outcome.is_replayed() {
            self.mark_claimed();
        }
        Ok(outcome)
    }

    /// Runs one call of a sink within the lease: for sinks that offer more than the trait does.
    ///
    /// `cut` says what it means that there was no answer by the lease's end, and
    /// [a moment](Self::LAST_ANSWER) more. A stale answer ends the lease.
    ///
    /// # Errors
    /// Those of `call` and of `cut`; [`SinkError::Lost`] if the lease was lost before the call
    /// began.
    pub async fn bounded<T>(
        self,
        cut: impl FnOnce(Loss) -> SinkError,
        call: impl Future<Output = Result<T, SinkError>>,
    ) -> Result<T, SinkError> {
        let mut call = pin!(call);
        let mut begun = false;
        let watched = poll_fn(|context| {
            begun = true;
            call.as_mut().poll(context)
        });
        let raced = Race::new(watched, self.lease.lost()).await;
        let answer = match raced {
            Raced::Done(answer) => answer,
            Raced::Stopped(loss) if !begun => Err(SinkError::Lost(loss)),
            Raced::Stopped(loss) => tokio::time::timeout(Self::LAST_ANSWER, call)
                .await
                .unwrap_or_else(|_| Err(cut(loss))),
        };
        if let Err(SinkError::Stale { current, .. }) = answer {
            self.lease.refuse(current);
        }
        answer
    }

    /// Remembers that the fence was raised here: for sinks that claim with their first statement.
    pub fn mark_claimed(&self) {
        let Some(sink) = self.sink.id() else { return };
        let claim = (sink, self.resource());
        let mut claims = self.lease.claims();
        if !claims.contains(&claim) {
            claims.push(claim);
        }
    }

    fn resource(&self) -> String {
        self.sink.resource(self.lease.path()).into_owned()
    }
}

impl<S: ?Sized> Clone for Fenced<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: ?Sized> Copy for Fenced<'_, S> {}

impl<S: ?Sized> fmt::Debug for Fenced<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fenced")
            .field("lease", self.lease)
            .finish_non_exhaustive()
    }
}
