use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::lease::LeaseHandle;
use crate::{FencingToken, LockPath, Loss, LossReason, ServiceId, SinkError, SinkId};

const HELD: u8 = 0;
const RELEASED: u8 = u8::MAX;

/// What is known of one grant, shared by the section, its guards and the lock service.
pub(crate) struct LeaseState {
    path: LockPath,
    token: FencingToken,
    /// Known once a section has it.
    service: OnceLock<ServiceId>,
    /// [`HELD`], [`RELEASED`], or one more than the index of the reason for the loss.
    phase: AtomicU8,
    suspect: AtomicBool,
    revoke_requested: AtomicBool,
    /// The newest token of another holder that a resource answered with; zero if none did.
    newer_token: AtomicI64,
    renewed_until: AtomicU64,
    hold_until: AtomicU64,
    changed: Notify,
    /// More than one where inner sections are reentrant.
    owners: AtomicUsize,
    handle: Mutex<Option<Box<dyn LeaseHandle>>>,
    /// The resources at which this lease has raised the fence, each with its sink.
    claims: Mutex<Vec<(SinkId, String)>>,
}

impl LeaseState {
    pub(crate) fn new(
        path: LockPath,
        token: FencingToken,
        deadline: Instant,
        handle: Box<dyn LeaseHandle>,
    ) -> Self {
        Self {
            path,
            token,
            service: OnceLock::new(),
            phase: AtomicU8::new(HELD),
            suspect: AtomicBool::new(false),
            revoke_requested: AtomicBool::new(false),
            newer_token: AtomicI64::new(0),
            renewed_until: AtomicU64::new(to_clock(deadline)),
            hold_until: AtomicU64::new(u64::MAX),
            changed: Notify::new(),
            owners: AtomicUsize::new(1),
            handle: Mutex::new(Some(handle)),
            claims: Mutex::default(),
        }
    }

    pub(crate) fn path(&self) -> &LockPath {
        &self.path
    }

    pub(crate) fn token(&self) -> FencingToken {
        self.token
    }

    /// Only the first to say so counts: a lease that is shared keeps its service.
    pub(crate) fn granted_by(&self, service: ServiceId) {
        let _ = self.service.set(service);
    }

    pub(crate) fn service(&self) -> Option<ServiceId> {
        self.service.get().copied()
    }

    /// When the lease is over unless something renews it.
    pub(crate) fn ends_at(&self) -> Instant {
        let nanos = self
            .renewed_until
            .load(Ordering::Acquire)
            .min(self.hold_until.load(Ordering::Acquire));
        *CLOCK_START + Duration::from_nanos(nanos)
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.ends_at().saturating_duration_since(Instant::now())
    }

    pub(crate) fn extend(&self, deadline: Instant) {
        if self.loss().is_none() {
            self.renewed_until
                .fetch_max(to_clock(deadline), Ordering::AcqRel);
        }
    }

    pub(crate) fn renew_no_longer_than(&self, deadline: Instant) {
        self.renewed_until
            .fetch_min(to_clock(deadline), Ordering::AcqRel);
    }

    pub(crate) fn hold_no_longer_than(&self, end: Instant) {
        self.hold_until.fetch_min(to_clock(end), Ordering::AcqRel);
    }

    /// The loss, if the lease is lost; a deadline that has passed makes it so.
    pub(crate) fn loss(&self) -> Option<Loss> {
        let phase = self.phase.load(Ordering::Acquire);
        if phase == HELD {
            let now = to_clock(Instant::now());
            if now >= self.hold_until.load(Ordering::Acquire) {
                self.lose(LossReason::HoldExceeded);
            } else if now >= self.renewed_until.load(Ordering::Acquire) {
                self.lose(LossReason::DeadlinePassed);
            } else {
                return None;
            }
        }
        self.reason().map(|reason| Loss {
            path: self.path.clone(),
            token: self.token,
            reason,
        })
    }

    fn reason(&self) -> Option<LossReason> {
        let phase = self.phase.load(Ordering::Acquire);
        LossReason::ALL
            .get(usize::from(phase).wrapping_sub(1))
            .copied()
    }

    pub(crate) fn is_released(&self) -> bool {
        self.phase.load(Ordering::Acquire) == RELEASED
    }

    /// Ends the lease as lost. Only the first end counts; says whether this was it.
    pub(crate) fn lose(&self, reason: LossReason) -> bool {
        let index = LossReason::ALL.iter().position(|known| *known == reason);
        let phase = index.and_then(|index| u8::try_from(index + 1).ok());
        let is_first = phase.is_some_and(|phase| self.end(phase));
        if is_first {
            tracing::warn!(lock.path = %self.path, token = %self.token, %reason, "lease lost");
            drop(self.take_handle());
        }
        is_first
    }

    /// A resource has refused this holder, having seen a newer token.
    pub(crate) fn refuse(&self, newer: FencingToken) {
        self.newer_token.fetch_max(newer.get(), Ordering::AcqRel);
        self.lose(LossReason::RefusedBySink);
    }

    pub(crate) fn newer_token(&self) -> Option<FencingToken> {
        FencingToken::try_from(self.newer_token.load(Ordering::Acquire)).ok()
    }

    /// Ends the lease as released, and gives out what frees the lock. `None` once it was lost.
    pub(crate) fn release(&self) -> Option<Box<dyn LeaseHandle>> {
        if self.loss().is_none() && self.end(RELEASED) {
            self.take_handle()
        } else {
            None
        }
    }

    fn end(&self, phase: u8) -> bool {
        let ended = self
            .phase
            .compare_exchange(HELD, phase, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if ended {
            self.changed.notify_waiters();
        }
        ended
    }

    fn take_handle(&self) -> Option<Box<dyn LeaseHandle>> {
        self.handle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// One more owns the grant from now on.
    pub(crate) fn join(&self) {
        self.owners.fetch_add(1, Ordering::AcqRel);
    }

    /// One owner is done with the grant; says whether it was the last.
    pub(crate) fn leave(&self) -> bool {
        self.owners.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(crate) fn set_suspect(&self, suspect: bool) {
        if self.suspect.swap(suspect, Ordering::AcqRel) != suspect {
            tracing::info!(lock.path = %self.path, token = %self.token, suspect, "lease");
        }
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.suspect.load(Ordering::Acquire)
    }

    pub(crate) fn ask_to_release(&self) {
        self.revoke_requested.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_revoke_requested(&self) -> bool {
        self.revoke_requested.load(Ordering::Acquire)
    }

    /// Refuses what may not be sent to a sink now.
    pub(crate) fn check(&self) -> Result<(), SinkError> {
        if let Some(loss) = self.loss() {
            return Err(SinkError::Lost(loss));
        }
        if self.is_suspect() {
            let path = self.path.clone();
            return Err(SinkError::Suspect { path });
        }
        Ok(())
    }

    pub(crate) fn claims(&self) -> MutexGuard<'_, Vec<(SinkId, String)>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves once the lease is lost.
    pub(crate) fn lost(&self) -> Lost<'_> {
        Lost {
            state: self,
            changed: self.changed.notified(),
        }
    }

    /// Resolves once the lease is lost or its holder was asked to give it back.
    pub(crate) async fn disturbed(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.loss().is_some() || self.is_revoke_requested() {
                return;
            }
            changed.await;
        }
    }
}

impl std::fmt::Debug for LeaseState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease")
            .field("path", &self.path)
            .field("token", &self.token)
            .field("reason", &self.reason())
            .field("suspect", &self.is_suspect())
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// Resolves with the loss of a lease, never before it.
    #[must_use = "futures do nothing unless polled"]
    pub(crate) struct Lost<'a> {
        state: &'a LeaseState,
        #[pin]
        changed: Notified<'a>,
    }
}

impl Future for Lost<'_> {
    type Output = Loss;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Loss> {
        let mut this = self.project();
        loop {
            let woken = this.changed.as_mut().poll(cx).is_ready();
            if let Some(loss) = this.state.loss() {
                return Poll::Ready(loss);
            }
            if !woken {
                return Poll::Pending;
            }
            this.changed.set(this.state.changed.notified());
        }
    }
}

/// Deadlines are kept as nanoseconds since the process first asked, to fit an atomic.
static CLOCK_START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn to_clock(instant: Instant) -> u64 {
    let since = instant.saturating_duration_since(*CLOCK_START);
    // Half of the range still adds to any `Instant`: 292 years.
    u64::try_from(since.as_nanos()).map_or(u64::MAX / 2, |nanos| nanos.min(u64::MAX / 2))
}
