use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use fenced_core::{
    Answer, Fate, Fence, FencingSink, Opened, Outcome, Request, SinkError, SinkId,
    TransactionalSink,
};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::gate::bounds::{Bounds, Full, now};
use crate::gate::entry::Applied;
use crate::gate::ledger::Ledger;
use crate::gate::permit::GatePermit;
use crate::gate::seen::{Seen, Standing};
use crate::gate::state::State;
use crate::in_flight::{InFlight, Ticket};
use crate::{Effect, GateBuilder, GateEntry, GateStore, resource};

/// A fence within one process, for effects that no database holds: those of a device, or of a
/// program that knows no tokens.
///
/// Requests of one holder run side by side. A newer holder waits until those that are under way
/// have ended, raises the fence, and is then the only one. What has begun is carried out: the
/// effect is not undone when its answer gets lost, and the request is kept once it is done. A
/// process that dies in between has done it without knowing, and so has an effect that fails half
/// way; [`outcome`](FencingSink::outcome) is then `Unknown` for good. Let the effect be one that may
/// be repeated.
///
/// All requests must pass this one gate: run the service once, or shard the resources.
///
/// ```no_run
/// use fenced_http::{FileStore, Gate};
///
/// # async fn open() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let gate = Gate::builder().open(FileStore::open("/var/lib/gateway/fences").await?).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gate {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    id: SinkId,
    pub(crate) bounds: Bounds,
    store: Option<Box<dyn GateStore>>,
    state: Mutex<State>,
    in_flight: InFlight,
}

impl Gate {
    /// How far ahead of the newest token another one may be unless told otherwise: 256 elections of
    /// a ZooKeeper leader.
    pub const MAX_STEP: u64 = 1 << 40;
    /// How long a newer holder waits for older ones unless told otherwise.
    pub const BUSY_TIMEOUT: Duration = Duration::from_secs(3);
    /// How many resources are known at once unless told otherwise.
    pub const MAX_RESOURCES: usize = 100_000;
    /// How many bytes of answers are kept at once unless told otherwise.
    pub const MAX_ANSWER_BYTES: usize = 64 << 20;
    /// How long an answer is kept unless told otherwise: a day.
    pub const KEEP: Duration = Duration::from_secs(24 * 3_600);

    /// Options, for [`GateBuilder::open`].
    pub fn builder() -> GateBuilder {
        GateBuilder::default()
    }

    pub(crate) fn new(ledger: Ledger, store: Option<Box<dyn GateStore>>, bounds: Bounds) -> Self {
        let shared = Shared {
            id: SinkId::unique(),
            bounds,
            store,
            state: Mutex::new(State::of(ledger)),
            in_flight: InFlight::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn keep(&self, entry: GateEntry) -> Result<(), SinkError> {
        match &self.shared.store {
            Some(store) => store.append(entry).await.map_err(SinkError::Backend),
            None => Ok(()),
        }
    }

    pub(crate) async fn within<T>(
        &self,
        resource: &str,
        turn: impl Future<Output = T>,
    ) -> Result<T, SinkError> {
        let turn = tokio::time::timeout(self.shared.bounds.busy_timeout, turn);
        turn.await.map_err(|_| SinkError::Busy {
            resource: resource.to_owned(),
            pids: Vec::new(),
        })
    }

    /// Compares, raises the fence where that is due, and holds it.
    async fn hold(&self, fence: &Fence) -> Result<OwnedRwLockReadGuard<Seen>, SinkError> {
        resource::check(&fence.resource).map_err(SinkError::backend)?;
        let resource = self.state().resource(fence, &self.shared.bounds)?;
        let seen = if let Ok(seen) = Arc::clone(&resource).try_read_owned() {
            seen
        } else {
            let turn = Arc::clone(&resource).read_owned();
            self.within(&fence.resource, turn).await?
        };
        let (floor, seen_now) = (self.state().floor, *seen);
        match seen_now.compare(fence, floor)? {
            Standing::Raised => Ok(seen),
            Standing::Newer => {
                drop(seen);
                let bounds = &self.shared.bounds;
                self.state().may_raise(seen_now, fence, bounds)?;
                self.raise(resource, fence).await
            }
        }
    }

    /// Waits for those who hold the fence, and raises it.
    async fn raise(
        &self,
        resource: Arc<RwLock<Seen>>,
        fence: &Fence,
    ) -> Result<OwnedRwLockReadGuard<Seen>, SinkError> {
        let turn = resource.write_owned();
        let mut seen = self.within(&fence.resource, turn).await?;
        let floor = self.state().floor;
        if seen.compare(fence, floor)? == Standing::Newer {
            self.keep(GateEntry::Raised {
                resource: fence.resource.clone(),
                token: fence.token,
                mode: fence.mode,
            })
            .await?;
            seen.raise(fence.mode, fence.token);
            let mut state = self.state();
            state.newest = state.newest.max(fence.token.get());
        }
        Ok(seen.downgrade())
    }

    /// The stored answer to a request, or the right to make it.
    fn look_up(&self, request: &Request) -> Result<Result<Ticket, Answer>, SinkError> {
        let Some(ticket) = self.shared.in_flight.enter(request.id()) else {
            return Err(SinkError::Retry("the same request is under way".into()));
        };
        let state = self.state();
        if let Some(answer) = state.applied(request)? {
            return Ok(Err(answer));
        }
        let bytes = state.requests.bytes();
        if bytes >= self.shared.bounds.max_answer_bytes {
            return Err(SinkError::Retry(Full::Answers(bytes).into()));
        }
        Ok(Ok(ticket))
    }

    async fn remember(&self, applied: Applied) -> Result<(), SinkError> {
        self.expire(applied.at).await?;
        self.keep(GateEntry::Applied(applied.clone())).await?;
        self.state().requests.insert(applied);
        Ok(())
    }

    /// Gives up what was kept long enough; many at a time.
    async fn expire(&self, now: u64) -> Result<(), SinkError> {
        let keep = self.shared.bounds.keep.as_secs();
        let oldest = self.state().requests.oldest();
        if oldest.is_none_or(|oldest| now.saturating_sub(oldest) <= keep + keep / 8) {
            return Ok(());
        }
        let before = now - keep;
        self.keep(GateEntry::Expired { before }).await?;
        self.state().requests.expire(before);
        Ok(())
    }
}

#[async_trait]
impl FencingSink for Gate {
    type Write = Effect;
    type Answer = Answer;

    async fn claim(&self, fence: &Fence) -> Result<(), SinkError> {
        let unclaimed = fence.clone().claimed(false);
        self.hold(&unclaimed).await.map(drop)
    }

    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        write: Effect,
    ) -> Result<Outcome<Answer>, SinkError> {
        let (gate, fence, request) = (self.clone(), fence.clone(), request.clone());
        let done = tokio::spawn(async move {
            let permit = match gate.open(&fence, Some(&request)).await? {
                Opened::Replayed(answer) => return Ok(Outcome::Replayed(answer)),
                Opened::Fresh(permit) => permit,
            };
            match write.take().await {
                Ok(answer) => gate.commit(permit, answer).await,
                Err(error) => {
                    gate.give_up(permit);
                    Err(error)
                }
            }
        });
        done.await.map_err(SinkError::backend)?
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<Answer>, SinkError> {
        request.digest()?;
        if let Some(answer) = self.state().applied(request)? {
            return Ok(Fate::Applied(answer));
        }
        let Some(sent) = request.fence() else {
            return Ok(Fate::Unknown);
        };
        let resource = self.state().resources.get(&sent.resource).cloned();
        let Some(resource) = resource else {
            return Ok(Fate::Unknown);
        };
        // Whoever is in the way may be about to apply it.
        let Ok(seen) = self.within(&sent.resource, resource.read_owned()).await else {
            return Ok(Fate::Unknown);
        };
        let state = self.state();
        let is_known = state.requests.knows_all_of(sent.token);
        Ok(match state.applied(request)? {
            Some(answer) => Fate::Applied(answer),
            None if is_known && seen.has_passed(sent) => Fate::Absent,
            None => Fate::Unknown,
        })
    }

    fn id(&self) -> Option<SinkId> {
        Some(self.shared.id)
    }
}

#[async_trait]
impl TransactionalSink for Gate {
    type Transaction = GatePermit;

    async fn open(
        &self,
        fence: &Fence,
        request: Option<&Request>,
    ) -> Result<Opened<GatePermit>, SinkError> {
        request.map_or(Ok(()), |request| request.digest().map(drop))?;
        let seen = self.hold(fence).await?;
        let request = match request {
            None => None,
            Some(request) => match self.look_up(request)? {
                Ok(ticket) => Some((request.clone(), ticket)),
                Err(answer) => return Ok(Opened::Replayed(answer)),
            },
        };
        let permit = GatePermit::new(self.clone(), seen, fence.clone(), request);
        Ok(Opened::Fresh(permit))
    }

    async fn commit(
        &self,
        permit: GatePermit,
        answer: Answer,
    ) -> Result<Outcome<Answer>, SinkError> {
        if let Some(request) = permit.request() {
            let applied = Applied {
                id: request.id().to_owned(),
                digest: *request.digest()?,
                token: permit.fence().token,
                at: now(),
                answer: answer.clone(),
            };
            self.remember(applied).await.map_err(|error| {
                tracing::error!(request = request.id(), %error, "an applied request could not be kept");
                request.ambiguous()
            })?;
        }
        permit.settle();
        Ok(Outcome::Applied(answer))
    }

    fn give_up(&self, permit: GatePermit) {
        permit.settle();
    }

    fn undoes(&self) -> bool {
        false
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("bounds", &self.shared.bounds)
            .field("is_durable", &self.shared.store.is_some())
            .finish_non_exhaustive()
    }
}
