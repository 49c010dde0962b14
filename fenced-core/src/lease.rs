use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::state::LeaseState;
use crate::timer::LeaseTimer;
use crate::{FencingToken, LockError, LockPath, Loss, LossReason};

/// One grant of a lock, as a lock service hands it out.
///
/// It is over, once and for ever, when it is released, when the service declares it lost, or when
/// its deadline passes, which a thread of its own watches. Sections own it; their bodies only see a
/// [`FencedGuard`](crate::FencedGuard).
///
/// # Cancel safety
/// Dropping a lease frees the lock in the background.
#[must_use = "dropping a lease frees the lock"]
pub struct Lease {
    state: Arc<LeaseState>,
    /// Whether this owner has given its share of the grant back.
    left: AtomicBool,
}

/// What frees a lock. Implemented by lock services, one for each grant.
///
/// Dropping it must free the lock too, in the background: without blocking, without panicking
/// outside a runtime, and with somebody who keeps at it until it is confirmed. That is what happens
/// when a body panics, when the caller's future is dropped, and when the lease is lost.
#[async_trait]
pub trait LeaseHandle: Send {
    /// Frees the lock and waits until that is confirmed.
    ///
    /// # Errors
    /// [`LockError::Unavailable`] if it cannot be confirmed now; the service goes on trying.
    async fn release(self: Box<Self>) -> Result<Released, LockError>;
}

/// How a release ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Released {
    /// The lock was ours until now.
    Confirmed,
    /// The lock had been lost before: somebody else may have held it meanwhile.
    AlreadyGone,
    /// The lock is still held, by a section around or inside of this one that shares the lease.
    StillShared,
}

/// The lock service's end of a lease.
#[derive(Clone)]
pub struct LeaseControl {
    state: Arc<LeaseState>,
}

impl Lease {
    /// Makes a lease of `path`, over at `deadline` unless it is [extended](LeaseControl::extend).
    ///
    /// The deadline counts from the *sending* of the last request that proved the lock to be ours.
    pub fn grant(
        path: LockPath,
        token: FencingToken,
        deadline: Instant,
        handle: impl LeaseHandle + 'static,
    ) -> (Self, LeaseControl) {
        let state = Arc::new(LeaseState::new(path, token, deadline, Box::new(handle)));
        LeaseTimer::watch(&state);
        let control = LeaseControl {
            state: Arc::clone(&state),
        };
        (Self::of(state), control)
    }

    fn of(state: Arc<LeaseState>) -> Self {
        let left = AtomicBool::new(false);
        Self { state, left }
    }

    /// One more owner of the same grant, which ends with the last of them.
    pub(crate) fn share(state: Arc<LeaseState>) -> Self {
        state.join();
        Self::of(state)
    }

    /// The lock.
    #[must_use]
    pub fn path(&self) -> &LockPath {
        self.state.path()
    }

    /// The token of this grant.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.state.token()
    }

    /// What is left until the deadline, if nothing renews the lease.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.state.remaining()
    }

    /// Whether the service cannot tell right now if the lock is still ours.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.state.is_suspect()
    }

    /// The loss, if the lease is lost.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        self.state.loss()
    }

    /// Waits until the lease is lost.
    pub async fn lost(&self) -> Loss {
        self.state.lost().await
    }

    /// Frees the lock and waits until that is confirmed, at most until the lease's deadline.
    ///
    /// # Errors
    /// [`LockError::Lost`] if the lease was lost before, [`LockError::Unavailable`] if the release
    /// could not be confirmed; the service goes on trying.
    pub async fn release(self) -> Result<Released, LockError> {
        self.give_back().await
    }

    pub(crate) async fn give_back(&self) -> Result<Released, LockError> {
        if self.leave() {
            // Boxed, so that a section's future has no room for it beside its body.
            Box::pin(release(&self.state)).await
        } else {
            Ok(Released::StillShared)
        }
    }

    /// Says whether nobody else owns the grant any longer.
    fn leave(&self) -> bool {
        !self.left.swap(true, Ordering::AcqRel) && self.state.leave()
    }

    pub(crate) fn state(&self) -> &Arc<LeaseState> {
        &self.state
    }
}

async fn release(state: &LeaseState) -> Result<Released, LockError> {
    let limit = state.remaining();
    let Some(handle) = state.release() else {
        return state
            .loss()
            .map_or(Ok(Released::AlreadyGone), |loss| Err(loss.into()));
    };
    let released = tokio::time::timeout(limit, handle.release())
        .await
        .unwrap_or_else(|_| {
            let cause = "the release was not confirmed before the lease's deadline";
            Err(LockError::unavailable(state.path(), limit, cause))
        });
    match &released {
        Ok(Released::Confirmed | Released::StillShared) => {}
        Ok(Released::AlreadyGone) => tracing::warn!(
            lock.path = %state.path(), token = %state.token(),
            "the lock had been lost before its release; the resources judge what was written"
        ),
        Err(error) => tracing::warn!(
            lock.path = %state.path(), token = %state.token(), %error,
            "the release goes on in the background"
        ),
    }
    released
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.leave() {
            drop(self.state.release());
        }
    }
}

impl LeaseControl {
    /// Moves the deadline on. Without effect once the lease is over, and never moves it back.
    pub fn extend(&self, deadline: Instant) {
        self.state.extend(deadline);
    }

    /// Nothing new is sent to a sink from now on, until [`confirm`](Self::confirm).
    pub fn suspect(&self) {
        self.state.set_suspect(true);
    }

    /// The service has verified that the lock is still ours.
    pub fn confirm(&self) {
        self.state.set_suspect(false);
    }

    /// Ends the lease as lost. Says whether this call did it: the first reason is the reason.
    pub fn lose(&self, reason: LossReason) -> bool {
        self.state.lose(reason)
    }

    /// Asks the holder to give the lock back; it is free not to.
    pub fn ask_to_release(&self) {
        self.state.ask_to_release();
    }

    /// Whether the lease is over: released or lost.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state.is_released() || self.state.loss().is_some()
    }

    /// The lock.
    #[must_use]
    pub fn path(&self) -> &LockPath {
        self.state.path()
    }

    /// The token of the grant.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.state.token()
    }

    /// The newer token of another holder that a resource has seen, if one refused this holder for
    /// it. A service that grants an older one later has lost its data:
    /// [`LockError::TokenRegressed`].
    #[must_use]
    pub fn newer_token(&self) -> Option<FencingToken> {
        self.state.newer_token()
    }

    /// For services that renew nothing while they are reachable.
    pub(crate) fn renew_no_longer_than(&self, deadline: Instant) {
        self.state.renew_no_longer_than(deadline);
        LeaseTimer::watch(&self.state);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}

impl fmt::Debug for LeaseControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeaseControl").field(&self.state).finish()
    }
}
