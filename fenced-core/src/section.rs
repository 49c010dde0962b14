use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::held;
use crate::installed;
use crate::lease::Lease;
use crate::running::{Grant, Running};
use crate::state::{LeaseState, Lost};
use crate::timer::LeaseTimer;
use crate::{FencedGuard, LockError, LockPath, LockRequest, LockService, PathError};

/// What happens to a body when its lease is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnLost {
    /// The body is dropped before it can resume, and the section returns [`LockError::Lost`].
    #[default]
    Cancel,
    /// The body runs to its end; every further use of a sink fails with the loss.
    Finish,
}

/// How a section gives its lock back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Release {
    /// It waits until the release is confirmed.
    #[default]
    Await,
    /// It returns once the release is under way; the service keeps at it until it is confirmed.
    Detach,
}

/// Starts a section of the lock `path`: what `#[fenced]` does, without a macro.
///
/// The path is written in full: holes, and the escaping of what fills them, are the attribute's. A
/// value put into a path by hand may hold a `/`.
///
/// ```
/// use std::time::Duration;
/// use fenced_core::{section, MemoryLocks};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), fenced_core::LockError> {
/// let locks = MemoryLocks::new();
/// let token = section(&locks, "/locks/reports")
///     .timeout(Duration::from_secs(3))
///     .run(async |guard| guard.token().get())
///     .await?;
/// assert!(token > 0);
/// # Ok(())
/// # }
/// ```
pub fn section<P>(locks: &dyn LockService, path: P) -> Section<'_>
where
    P: TryInto<LockPath>,
    PathError: From<P::Error>,
{
    Section::new(
        Locks::Named(locks),
        path.try_into().map_err(PathError::from),
    )
}

/// A section of the installed lock service.
pub fn installed_section(path: Result<LockPath, PathError>) -> Section<'static> {
    Section::new(Locks::Installed(installed::current()), path)
}

/// A section of a path that was built from a template.
pub fn template_section(locks: &dyn LockService, path: Result<LockPath, PathError>) -> Section<'_> {
    Section::new(Locks::Named(locks), path)
}

enum Locks<'a> {
    Named(&'a dyn LockService),
    Installed(Option<Arc<dyn LockService>>),
}

impl Locks<'_> {
    fn service(&self) -> Option<&dyn LockService> {
        match self {
            Self::Named(locks) => Some(*locks),
            Self::Installed(locks) => locks.as_deref(),
        }
    }
}

/// A section that has not begun; made by [`section`].
#[must_use = "a section does nothing until it is run"]
pub struct Section<'a> {
    locks: Locks<'a>,
    path: Result<LockPath, PathError>,
    timeout: Duration,
    hold: Option<Duration>,
    label: Option<&'a str>,
    reentrant: bool,
    on_lost: OnLost,
    release: Release,
}

impl<'a> Section<'a> {
    /// How long a section waits for its lock unless told otherwise.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    fn new(locks: Locks<'a>, path: Result<LockPath, PathError>) -> Self {
        Self {
            locks,
            path,
            timeout: Self::DEFAULT_TIMEOUT,
            hold: None,
            label: None,
            reentrant: false,
            on_lost: OnLost::Cancel,
            release: Release::Await,
        }
    }

    /// Waits at most this long for the lock; zero asks once. The default is ten seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Loses the lock when the body has held it for so long.
    ///
    /// Without effect where a [reentrant](Self::reentrant) section shares a lease: the limit is
    /// that of the section which took the lock.
    pub fn hold(mut self, longest: Duration) -> Self {
        self.hold = Some(longest);
        self
    }

    /// Says who asks, for those who look into the queue. Never a secret.
    pub fn label(mut self, label: &'a str) -> Self {
        self.label = Some(label);
        self
    }

    /// Shares the lease of a section around this one that holds the same lock.
    pub fn reentrant(mut self) -> Self {
        self.reentrant = true;
        self
    }

    /// Says what happens to the body when the lease is lost.
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Says how the lock is given back.
    pub fn release(mut self, release: Release) -> Self {
        self.release = release;
        self
    }

    /// Waits for the lock, runs `body`, gives the lock back.
    ///
    /// # Errors
    /// Why there was no grant, or [`LockError::Lost`]. What the body returns, error or not, is the
    /// value.
    ///
    /// # Cancel safety
    /// Dropping the future drops the body, and frees the lock in the background.
    pub async fn run<T, F>(self, body: F) -> Result<T, LockError>
    where
        F: for<'s> AsyncFnOnce(FencedGuard<'s>) -> T,
    {
        self.enter().await.run(body).await
    }

    /// Waits for the lock only. The service is not borrowed any longer than that.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub fn enter(self) -> impl Future<Output = Entered> + Send + use<'a> {
        // Boxed, so that a caller's future has no room for what only the waiting needs.
        Box::pin(async move {
            Entered {
                on_lost: self.on_lost,
                release: self.release,
                lease: self.grant().await.map_err(|error| Some(Box::new(error))),
            }
        })
    }

    async fn grant(self) -> Result<Lease, LockError> {
        let path = self.path?;
        let Some(locks) = self.locks.service() else {
            return Err(LockError::NoService { path });
        };
        let service = locks.id();
        if let Some(outer) = held::find(service, &path) {
            return share(outer, self.reentrant);
        }
        let mut request = LockRequest::new(&path, self.timeout);
        request.label = self.label;
        let lease = locks.acquire(request).await?;
        lease.state().granted_by(service);
        let end = self.hold.and_then(|hold| Instant::now().checked_add(hold));
        if let Some(end) = end {
            lease.state().hold_no_longer_than(end);
            LeaseTimer::watch(lease.state());
        }
        Ok(lease)
    }
}

fn share(outer: Arc<LeaseState>, reentrant: bool) -> Result<Lease, LockError> {
    if let Some(loss) = outer.loss() {
        return Err(loss.into());
    }
    if !reentrant {
        let path = outer.path().clone();
        return Err(LockError::Reentrant { path });
    }
    Ok(Lease::share(outer))
}

/// A section whose lock was granted, or not: [`run`](Entered::run) tells.
#[must_use = "the lock is freed when this is dropped"]
#[derive(Debug)]
pub struct Entered {
    on_lost: OnLost,
    release: Release,
    /// The failure is here until it is told.
    lease: Result<Lease, Option<Box<LockError>>>,
}

impl Entered {
    /// Runs `body` under the lease, then gives the lock back.
    ///
    /// # Errors
    /// As [`Section::run`].
    pub async fn run<T, F>(mut self, body: F) -> Result<T, LockError>
    where
        F: for<'s> AsyncFnOnce(FencedGuard<'s>) -> T,
    {
        let outcome = self.begin(body).await;
        self.end().await;
        outcome
    }

    /// The first half of [`run`](Self::run), for the expansion of `#[fenced]`: code that a
    /// program has once for each section, so it does as little as it can.
    #[doc(hidden)]
    pub fn begin<T, F>(&mut self, body: F) -> impl Future<Output = Result<T, LockError>>
    where
        F: for<'s> AsyncFnOnce(FencedGuard<'s>) -> T,
    {
        let (grant, lost) = self.grant();
        let body = match grant {
            Ok(lease) => Some(body(FencedGuard::new(lease))),
            Err(_) => None,
        };
        Running { grant, lost, body }
    }

    fn grant(&mut self) -> (Grant<'_>, Option<Lost<'_>>) {
        match (&mut self.lease, self.on_lost) {
            (Ok(lease), OnLost::Cancel) => (Ok(lease), Some(lease.state().lost())),
            (Ok(lease), OnLost::Finish) => (Ok(lease), None),
            (Err(error), _) => (Err(error.take()), None),
        }
    }

    /// The other half: gives the lock back, and waits for it unless told otherwise.
    #[doc(hidden)]
    pub async fn end(self) {
        if let (Ok(lease), Release::Await) = (&self.lease, self.release) {
            // Whatever becomes of it is told as an event; the body's value stands.
            let _ = lease.give_back().await;
        }
    }
}

impl fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section")
            .field("path", &self.path)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
