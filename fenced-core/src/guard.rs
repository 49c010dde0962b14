use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use crate::lease::{Lease, Released};
use crate::race::{Race, Raced};
use crate::{Fenced, FencingSink, FencingToken, LockError, LockPath, Loss};

/// Proof, valid for `'s`, that the running code is inside a section.
///
/// It is a move-only handle of eight bytes. Nothing that holds it can outlive the section: it
/// cannot be returned, stored, cloned, sent to a task, or mixed with the guard of another section.
/// What gives the lock up takes the guard, so that the compiler refuses to use it afterwards.
///
/// What a compiler cannot see is that the lease was lost; [`fence`](Self::fence) and the resource
/// itself see it.
#[must_use = "a section that never shows its guard to a sink is not fenced"]
pub struct FencedGuard<'s> {
    lease: &'s Lease,
    brand: Brand<'s>,
}

/// Makes `'s` invariant, so that guards of two sections never unify.
type Brand<'s> = PhantomData<fn(&'s ()) -> &'s ()>;

/// What became of a future that ran under [`FencedGuard::hold`].
#[derive(Debug)]
#[must_use = "the guard is in here, unless the lease was lost"]
pub enum Hold<'s, T> {
    /// The future finished, and the lease was still held.
    Held(FencedGuard<'s>, T),
    /// The lease was lost first, and the future dropped. There is no guard in here.
    Lost(Loss),
}

impl<'s> FencedGuard<'s> {
    pub(crate) fn new(lease: &'s Lease) -> Self {
        Self {
            lease,
            brand: PhantomData,
        }
    }

    /// The token that resources compare.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.lease.token()
    }

    /// The lock.
    #[must_use]
    pub fn path(&self) -> &LockPath {
        self.lease.path()
    }

    /// What is left until the deadline, if nothing renews the lease.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// Whether the lock service cannot tell right now if the lock is still ours.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.lease.is_suspect()
    }

    /// Whether somebody asked for the lock back. Giving it back is up to the body.
    #[must_use]
    pub fn revoke_requested(&self) -> bool {
        self.lease.state().is_revoke_requested()
    }

    /// The only handle by which `sink` can be used in this section. Sends nothing.
    pub fn fence<'g, S: FencingSink + ?Sized>(&'g self, sink: &'g S) -> Fenced<'g, S> {
        Fenced::new(self.lease.state(), sink)
    }

    /// Frees the lock before the body ends. The body may go on, without a guard.
    ///
    /// Where [reentrant](crate::Section::reentrant) sections share the lease, it is freed by the
    /// last of them: [`Released::StillShared`].
    ///
    /// # Errors
    /// [`LockError::Lost`] if the lease was lost before, [`LockError::Unavailable`] if the release
    /// could not be confirmed before the deadline; it goes on in the background.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the release to the background.
    pub async fn release(self) -> Result<Released, LockError> {
        self.lease.give_back().await
    }

    /// Waits until the lease is lost, giving the guard up for it.
    ///
    /// For bodies with `on_lost = "finish"`; the others are dropped at that moment.
    pub async fn revoked(self) -> Loss {
        self.lease.lost().await
    }

    /// Waits until the lease is lost or [somebody asked](Self::revoke_requested) for it.
    pub async fn disturbed(&self) {
        self.lease.state().disturbed().await;
    }

    /// Runs `work` under the lease, and gives the guard back only if the lease is still held.
    ///
    /// # Cancel safety
    /// `work` is dropped with the future, and in the very poll that sees the loss.
    pub async fn hold<F: Future>(self, work: F) -> Hold<'s, F::Output> {
        match Race::new(work, self.lease.state().lost()).await {
            Raced::Done(value) => Hold::Held(self, value),
            Raced::Stopped(loss) => Hold::Lost(loss),
        }
    }
}

impl fmt::Debug for FencedGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedGuard")
            .field("path", self.path())
            .field("token", &self.token())
            .finish_non_exhaustive()
    }
}
