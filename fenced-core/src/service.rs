use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{Lease, LockError, LockPath};

/// Something that grants leases: a ZooKeeper ensemble, a file, a map in memory.
///
/// # Cancel safety
/// Dropping the future of [`acquire`](LockService::acquire) leaves nothing behind: no node, no
/// row, no place in a queue.
///
/// Check one of your own with [`lock_conformance!`](crate::lock_conformance).
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a lock service",
    label = "this is what the section takes its lock from",
    note = "`service = …` names a value that implements `fenced::LockService`"
)]
pub trait LockService: Send + Sync {
    /// Waits for a grant within `request.budget`.
    ///
    /// # Errors
    /// [`LockError::Timeout`] when the lock was not free in time, and others of [`LockError`].
    async fn acquire(&self, request: LockRequest<'_>) -> Result<Lease, LockError>;

    /// Which set of locks this is. Two handles on one set must say the same.
    fn id(&self) -> ServiceId {
        ServiceId::of(self)
    }
}

/// The identity of a lock service within this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServiceId(Identity);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Identity {
    Address(usize),
    Name(u64),
}

impl ServiceId {
    /// The identity of whatever lives at this address: what all handles on a service share.
    pub fn of<T: ?Sized>(shared: &T) -> Self {
        Self(Identity::Address(
            std::ptr::from_ref(shared).cast::<()>().addr(),
        ))
    }

    /// The identity of a set of locks by its name, such as a file or an ensemble: two services on
    /// one set are one.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        Self(Identity::Name(hasher.finish()))
    }
}

macro_rules! pointers {
    ($($pointer:ty)*) => {$(
        #[async_trait]
        #[diagnostic::do_not_recommend]
        impl<L: LockService + ?Sized> LockService for $pointer {
            async fn acquire(&self, request: LockRequest<'_>) -> Result<Lease, LockError> {
                (**self).acquire(request).await
            }

            fn id(&self) -> ServiceId {
                (**self).id()
            }
        }
    )*};
}
pointers!(&L Box<L> Arc<L>);

/// Whether a contender excludes everybody, or only those that exclude.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mode {
    /// One holder.
    #[default]
    Exclusive,
    /// Many holders, none of them exclusive.
    Shared,
}

/// What a contender asks for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LockRequest<'a> {
    /// The lock.
    pub path: &'a LockPath,
    /// How long the whole acquire may take.
    pub budget: Budget,
    /// Exclusive or shared.
    pub mode: Mode,
    /// Who asks, for those who look into the queue. Never a secret.
    pub label: Option<&'a str>,
}

impl<'a> LockRequest<'a> {
    /// Asks for the exclusive lock `path`, waiting for at most `timeout` from now on.
    #[must_use]
    pub fn new(path: &'a LockPath, timeout: Duration) -> Self {
        Self {
            path,
            budget: Budget::starting_now(timeout),
            mode: Mode::Exclusive,
            label: None,
        }
    }

    /// Asks in this mode.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Says who asks.
    #[must_use]
    pub fn label(mut self, label: &'a str) -> Self {
        self.label = Some(label);
        self
    }
}

/// The time that one whole acquire may take, whatever it consists of.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    started: Instant,
    timeout: Duration,
}

impl Budget {
    /// A century: as good as for ever, and no sum with an `Instant` overflows.
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

    fn starting_now(timeout: Duration) -> Self {
        Self {
            started: Instant::now(),
            timeout: timeout.min(Self::LONGEST),
        }
    }

    /// When it is used up.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.started + self.timeout
    }

    /// What is left of it.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline().saturating_duration_since(Instant::now())
    }

    /// What was used of it.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether it was zero from the start: ask once, never stand in the queue.
    ///
    /// The asking itself still takes the lock service a moment, which it bounds on its own.
    #[must_use]
    pub fn tries_once(&self) -> bool {
        self.timeout.is_zero()
    }
}

/// Says which lock service a type uses for its `#[fenced]` methods.
///
/// ```
/// use fenced_core::{HasLocks, LockService, MemoryLocks};
///
/// struct Inventory { locks: MemoryLocks }
///
/// impl HasLocks for Inventory {
///     fn locks(&self) -> &dyn LockService { &self.locks }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which lock service its `#[fenced]` methods use",
    label = "`HasLocks` is not implemented for `{Self}`",
    note = "implement `fenced::HasLocks`, or name the service: `#[fenced(service = self.locks, …)]`"
)]
pub trait HasLocks {
    /// The lock service.
    fn locks(&self) -> &dyn LockService;
}
