mod operator;
mod thread;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fenced_core::{Lease, LockError, LockRequest, LockService, Mode, ServiceId};
use tokio::time::timeout_at;

use crate::contender::NAME_BYTES;
use crate::events::{SessionEvent, SessionEvents};
use crate::host::Shared;
use crate::hosts::Hosts;
use crate::lines::{Place, Request};
use crate::settings::Settings;
use crate::{ZkBuilder, ZkError};

pub(crate) use thread::Away;

/// Locks that a ZooKeeper ensemble keeps.
///
/// A handle: its clones share one session, which lives on a thread of its own and is replaced when
/// it ends. Whoever holds a lock at that time has lost it; whoever waits goes on waiting. Dropping
/// the last handle closes the session in the background, once nothing is held on it; a process
/// that exits at that moment leaves its nodes behind until the session times out, so
/// [`close`](Self::close) it.
///
/// ```no_run
/// use std::time::Duration;
/// use fenced_core::section;
/// use fenced_zk::ZkLocks;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = ZkLocks::builder()
///     .session_timeout(Duration::from_secs(10))
///     .owner("inventory/7")
///     .connect("zk1:2181,zk2:2181,zk3:2181/shop")
///     .await?;
/// section(&locks, "/locks/reports")
///     .run(async |guard| println!("{}", guard.token()))
///     .await?;
/// locks.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ZkLocks {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    hosts: Hosts,
}

impl ZkLocks {
    /// Opens a session with the ensemble `address` (`host1:2181,host2:2181/chroot`), as
    /// [`builder`](Self::builder) does with nothing set.
    ///
    /// # Errors
    /// As [`ZkBuilder::connect`].
    pub async fn connect(address: &str) -> Result<Self, ZkError> {
        Self::builder().connect(address).await
    }

    /// For timeouts, a root path, credentials and more.
    pub fn builder() -> ZkBuilder {
        ZkBuilder::new()
    }

    pub(crate) async fn open(settings: Settings) -> Result<Self, ZkError> {
        let shared = Arc::new(Shared::new(settings));
        let hosts = Hosts::open(Arc::clone(&shared)).await?;
        let inner = Arc::new(Inner { shared, hosts });
        Ok(Self { inner })
    }

    /// The session timeout that the server has granted: perhaps not the one that was asked for.
    ///
    /// A lease outlives the connection by nine tenths of it.
    #[must_use]
    pub fn session_timeout(&self) -> Duration {
        self.inner.shared.granted_timeout()
    }

    /// The changes of the sessions from now on.
    #[must_use]
    pub fn events(&self) -> SessionEvents {
        self.inner.shared.events.listen()
    }

    /// Ends the session: whoever waits gets [`LockError::Closed`], whoever holds a lock loses it.
    ///
    /// # Errors
    /// [`ZkError::NotClosed`] if the server did not confirm it within the connect timeout.
    ///
    /// # Cancel safety
    /// The session is closed in any case.
    pub async fn close(&self) -> Result<(), ZkError> {
        let began = Instant::now();
        let shared = &self.inner.shared;
        shared.lines.close();
        let is_confirmed = self.inner.hosts.close().await;
        shared.events.tell(SessionEvent::Closed);
        if is_confirmed {
            return Ok(());
        }
        Err(ZkError::NotClosed {
            servers: shared.settings.address.servers.clone(),
            waited: began.elapsed(),
            timeout: self.session_timeout(),
        })
    }

    /// Stops granting, lets those who hold a lock finish within `grace`, then
    /// [closes](Self::close).
    ///
    /// # Errors
    /// As [`close`](Self::close).
    ///
    /// # Cancel safety
    /// Nothing is granted any longer, and nothing is closed yet.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), ZkError> {
        let lines = &self.inner.shared.lines;
        lines.close();
        // Whoever is not done by then loses the lock.
        let _ = tokio::time::timeout(grace, lines.emptied()).await;
        self.close().await
    }
}

impl Inner {
    fn stand(&self, request: &LockRequest<'_>) -> Result<Place, LockError> {
        let Shared {
            settings, lines, ..
        } = &*self.shared;
        let directory = settings.root.len() + request.path.as_str().len();
        let stand = lines.stand(
            Request {
                path: request.path.clone(),
                shared: request.mode == Mode::Shared,
                tries_once: request.budget.tries_once(),
                label: settings.label(request.label),
            },
            // Its own node and its predecessor.
            2 * (directory + NAME_BYTES),
        );
        let waited = || request.budget.waited();
        let (place, new_on) = stand.map_err(|it| it.into_error(request.path, waited()))?;
        if let Some(host) = new_on {
            let served = self.hosts.serve(host, place.key().clone());
            served.map_err(|error| LockError::unavailable(request.path, waited(), error))?;
        }
        Ok(place)
    }

    /// Until when an answer is awaited.
    fn limit(&self, request: &LockRequest<'_>) -> Instant {
        if request.budget.tries_once() {
            let asking = self.shared.settings.connect_timeout;
            return Instant::now() + asking.min(ZkBuilder::TRIES_ONCE_WITHIN);
        }
        request.budget.deadline()
    }

    /// Why there was no answer in time.
    fn too_late(&self, request: &LockRequest<'_>, place: &Place) -> LockError {
        let waited = request.budget.waited();
        let status = place.host().and_then(|host| self.hosts.status(host));
        let is_connected = status.as_ref().is_some_and(|it| it.is_connected());
        match place.queue() {
            Some(queue) if is_connected => LockError::timeout(request.path, waited, queue),
            _ => {
                let trouble = status.map(|it| it.trouble()).unwrap_or_default();
                LockError::unavailable(request.path, waited, trouble)
            }
        }
    }
}

#[async_trait]
impl LockService for ZkLocks {
    async fn acquire(&self, request: LockRequest<'_>) -> Result<Lease, LockError> {
        let mut place = self.inner.stand(&request)?;
        let limit = self.inner.limit(&request);
        match timeout_at(limit.into(), place.answer()).await {
            Ok(Ok(Ok(lease))) => Ok(lease),
            Ok(Ok(Err(refusal))) => Err(refusal.into_error(request.path, request.budget.waited())),
            Ok(Err(_)) => Err(LockError::closed(request.path)),
            Err(_) => Err(self.inner.too_late(&request, &place)),
        }
    }

    /// The same for all services with the same servers and root.
    fn id(&self) -> ServiceId {
        self.inner.shared.settings.id()
    }
}

impl fmt::Debug for ZkLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZkLocks")
            .field("servers", &self.inner.shared.settings.address.servers)
            .field("root", &self.inner.shared.settings.root)
            .finish_non_exhaustive()
    }
}
