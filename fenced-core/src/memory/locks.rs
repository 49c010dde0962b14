use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{Notify, oneshot};

use crate::error::Queue;
use crate::lease::{Lease, LeaseControl, LeaseHandle, Released};
use crate::{FencingToken, LockError, LockPath, LockRequest, LockService, LossReason, ServiceId};

/// Locks within one process, whose leases a test can take away.
///
/// First come, first served. Clones are handles on the same locks.
///
/// ```
/// use fenced_core::{section, LockError, LossReason, MemoryLocks};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let locks = MemoryLocks::new();
/// let lost = section(&locks, "/locks/a")
///     .run(async |_guard| {
///         locks.lose("/locks/a", LossReason::SessionExpired);
///         std::future::pending::<()>().await;
///     })
///     .await;
/// assert!(matches!(lost, Err(LockError::Lost(loss)) if loss.reason == LossReason::SessionExpired));
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryLocks {
    shared: Arc<Shared>,
}

struct Shared {
    /// How long a lease lasts once nothing renews it.
    lease: Duration,
    /// Tells those who wait for a connection.
    reconnected: Notify,
    locks: Mutex<Locks>,
}

#[derive(Default)]
struct Locks {
    disconnected: bool,
    last_token: i64,
    by_path: HashMap<LockPath, Lock>,
}

struct Lock {
    /// Nobody only while disconnected.
    holder: Option<Holder>,
    waiters: VecDeque<Waiter>,
}

struct Waiter {
    grant: oneshot::Sender<Lease>,
    label: Option<String>,
}

struct Holder {
    control: LeaseControl,
    label: Option<String>,
}

/// What frees a lock of [`MemoryLocks`].
struct Handle {
    shared: Arc<Shared>,
    path: LockPath,
    token: FencingToken,
}

impl MemoryLocks {
    /// How long a lease lasts without a connection, unless told otherwise.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(10);

    /// Locks that nobody holds.
    #[must_use]
    pub fn new() -> Self {
        Self::with_lease(Self::DEFAULT_LEASE)
    }

    /// Locks whose leases last so long once [`disconnect`](Self::disconnect) was called.
    #[must_use]
    pub fn with_lease(lease: Duration) -> Self {
        let shared = Arc::new(Shared {
            lease,
            reconnected: Notify::new(),
            locks: Mutex::default(),
        });
        Self { shared }
    }

    /// Ends the lease of `path`, if somebody holds it, and says whether somebody did.
    pub fn lose(&self, path: &str, reason: LossReason) -> bool {
        self.holder(path)
            .is_some_and(|control| control.lose(reason))
    }

    /// Asks the holder of `path` to give it back, and says whether there is one.
    pub fn ask_to_release(&self, path: &str) -> bool {
        let holder = self.holder(path);
        holder.iter().for_each(LeaseControl::ask_to_release);
        holder.is_some()
    }

    /// Makes every lease suspect and lets it run out; nothing is granted meanwhile.
    pub fn disconnect(&self) {
        let end = Instant::now() + self.shared.lease;
        self.shared.locks().disconnected = true;
        for control in self.shared.controls() {
            control.suspect();
            control.renew_no_longer_than(end);
        }
    }

    /// Confirms every lease that has not run out, and grants again.
    pub fn reconnect(&self) {
        let controls = self.shared.controls();
        for control in controls.iter().filter(|control| !control.is_over()) {
            control.extend(far_ahead());
            control.confirm();
        }
        let mut locks = self.shared.locks();
        locks.disconnected = false;
        let free = locks
            .by_path
            .iter()
            .filter(|(_, lock)| lock.holder.is_none());
        let free: Vec<_> = free.map(|(path, _)| path.clone()).collect();
        let refused = free
            .iter()
            .flat_map(|path| self.shared.pass_on(&mut locks, path));
        let refused: Vec<_> = refused.collect();
        drop(locks);
        drop(refused);
        self.shared.reconnected.notify_waiters();
    }

    /// The token of the present holder of `path`.
    #[must_use]
    pub fn token(&self, path: &str) -> Option<FencingToken> {
        self.holder(path).map(|control| control.token())
    }

    /// How many wait for `path`.
    #[must_use]
    pub fn waiters(&self, path: &str) -> usize {
        self.shared.locks().by_path.get(path).map_or(0, |lock| {
            lock.waiters
                .iter()
                .filter(|waiter| !waiter.grant.is_closed())
                .count()
        })
    }

    fn holder(&self, path: &str) -> Option<LeaseControl> {
        let locks = self.shared.locks();
        let holder = locks.by_path.get(path)?.holder.as_ref()?;
        Some(holder.control.clone())
    }
}

/// In memory nothing has to be renewed while one is connected.
fn far_ahead() -> Instant {
    Instant::now() + Duration::from_secs(365 * 24 * 3_600)
}

impl Shared {
    fn locks(&self) -> MutexGuard<'_, Locks> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn controls(&self) -> Vec<LeaseControl> {
        let locks = self.locks();
        let holders = locks
            .by_path
            .values()
            .filter_map(|lock| lock.holder.as_ref());
        holders.map(|holder| holder.control.clone()).collect()
    }

    /// Grants the lock at once, or gives out a place in its queue.
    fn enter(self: &Arc<Self>, request: &LockRequest<'_>) -> Entry {
        let label = request.label.map(str::to_owned);
        let mut locks = self.locks();
        if locks.disconnected {
            return Entry::Disconnected;
        }
        if let Some(lock) = locks.by_path.get_mut(request.path.as_str()) {
            let (grant, place) = oneshot::channel();
            lock.waiters.retain(|waiter| !waiter.grant.is_closed());
            let queue = Queue {
                ahead: Some(lock.waiters.len() + 1),
                holder: lock.holder.as_ref().and_then(|holder| holder.label.clone()),
            };
            lock.waiters.push_back(Waiter { grant, label });
            return Entry::Queued(place, queue);
        }
        let (lease, control) = self.grant(&mut locks, request.path);
        let lock = Lock {
            holder: Some(Holder { control, label }),
            waiters: VecDeque::new(),
        };
        locks.by_path.insert(request.path.clone(), lock);
        Entry::Granted(lease)
    }

    fn grant(self: &Arc<Self>, locks: &mut Locks, path: &LockPath) -> (Lease, LeaseControl) {
        locks.last_token += 1;
        let token =
            FencingToken::try_from(locks.last_token).expect("a process that granted 2^63 leases");
        let handle = Handle {
            shared: Arc::clone(self),
            path: path.clone(),
            token,
        };
        Lease::grant(path.clone(), token, far_ahead(), handle)
    }

    /// Frees the lock; says whether it was this token that held it.
    fn free(self: &Arc<Self>, path: &LockPath, token: FencingToken) -> bool {
        let mut locks = self.locks();
        let Some(lock) = locks.by_path.get_mut(path) else {
            return false;
        };
        let is_ours = |holder: &mut Holder| holder.control.token() == token;
        let Some(left) = lock.holder.take_if(is_ours) else {
            return false;
        };
        let refused = self.pass_on(&mut locks, path);
        drop(locks);
        // Dropped last: each of them comes back here, and finds that it holds nothing.
        drop((left, refused));
        true
    }

    /// Grants a free lock to the first who waits; gives out what those who have gone did not take.
    fn pass_on(self: &Arc<Self>, locks: &mut Locks, path: &LockPath) -> Vec<Lease> {
        let mut refused = Vec::new();
        while let Some(lock) = locks.by_path.get_mut(path) {
            if locks.disconnected && !lock.waiters.is_empty() {
                break;
            }
            let Some(waiter) = lock.waiters.pop_front() else {
                locks.by_path.remove(path);
                break;
            };
            let (lease, control) = self.grant(locks, path);
            match waiter.grant.send(lease) {
                Ok(()) => {
                    if let Some(lock) = locks.by_path.get_mut(path) {
                        let label = waiter.label;
                        lock.holder = Some(Holder { control, label });
                    }
                    break;
                }
                Err(lease) => refused.push(lease),
            }
        }
        refused
    }
}

enum Entry {
    Granted(Lease),
    Queued(oneshot::Receiver<Lease>, Queue),
    Disconnected,
}

#[async_trait]
impl LockService for MemoryLocks {
    async fn acquire(&self, request: LockRequest<'_>) -> Result<Lease, LockError> {
        let limit = tokio::time::Instant::from_std(request.budget.deadline());
        let waited = || request.budget.waited();
        loop {
            let mut reconnected = std::pin::pin!(self.shared.reconnected.notified());
            reconnected.as_mut().enable();
            match self.shared.enter(&request) {
                Entry::Granted(lease) => return Ok(lease),
                Entry::Queued(place, queue) => {
                    let granted = tokio::time::timeout_at(limit, place).await;
                    let timeout = || LockError::timeout(request.path, waited(), queue);
                    return granted.ok().and_then(Result::ok).ok_or_else(timeout);
                }
                Entry::Disconnected => {
                    let reached = tokio::time::timeout_at(limit, reconnected).await;
                    reached.map_err(|_| {
                        LockError::unavailable(request.path, waited(), "disconnected")
                    })?;
                }
            }
        }
    }

    fn id(&self) -> ServiceId {
        ServiceId::of(&*self.shared)
    }
}

#[async_trait]
impl LeaseHandle for Handle {
    async fn release(self: Box<Self>) -> Result<Released, LockError> {
        Ok(if self.shared.free(&self.path, self.token) {
            Released::Confirmed
        } else {
            Released::AlreadyGone
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.free(&self.path, self.token);
    }
}

impl Default for MemoryLocks {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLocks")
            .field("lease", &self.shared.lease)
            .field("disconnected", &self.shared.locks().disconnected)
            .finish_non_exhaustive()
    }
}
