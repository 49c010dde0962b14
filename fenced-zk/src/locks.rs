use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fenced_core::{Lease, LockError, LockPath, LockRequest, LockService, Mode, ServiceId};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout_at;
use zookeeper_client::Error;

use crate::events::{Events, SessionEvent, SessionEvents};
use crate::host::{Host, Shared, Status};
use crate::lines::{LineKey, Place, Request};
use crate::session::Session;
use crate::settings::Settings;
use crate::{Contender, InspectError, Inspection, ZkBuilder, ZkError, inspect};

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
    /// More than one only where the watches of one session would be too many.
    hosts: Mutex<Vec<Host>>,
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
        let shared = Arc::new(Shared {
            settings: Arc::new(settings),
            lines: Arc::default(),
            events: Events::new(),
            closing: watch::Sender::new(false),
        });
        let began = Instant::now();
        let (opened, open) = oneshot::channel();
        let host = Host::start(0, &shared, Some(opened));
        let host = host.map_err(|error| unreachable(&shared.settings, began, error))?;
        match open.await {
            Ok(Ok(())) => Ok(Self {
                inner: Arc::new(Inner {
                    shared,
                    hosts: Mutex::new(vec![host]),
                }),
            }),
            Ok(Err(Error::AuthFailed)) => Err(ZkError::Credentials {
                servers: shared.settings.address.servers.clone(),
            }),
            Ok(Err(error)) => Err(unreachable(&shared.settings, began, error)),
            Err(gone) => Err(unreachable(&shared.settings, began, gone)),
        }
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
        shared.closing.send_replace(true);
        let farewells: Vec<_> = self.inner.hosts().iter().map(Host::farewell).collect();
        let mut is_confirmed = true;
        for mut farewell in farewells {
            // A thread that says nothing has left nothing.
            if let Ok(said) = farewell.wait_for(Option::is_some).await {
                is_confirmed &= !matches!(*said, Some(Err(_)));
            }
        }
        shared.events.tell(SessionEvent::Closed);
        if is_confirmed {
            return Ok(());
        }
        Err(ZkError::NotClosed {
            servers: shared.settings.address.servers.clone(),
            waited: began.elapsed(),
            timeout: shared.settings.session_timeout,
        })
    }

    /// Looks at the queue of a lock, without standing in it.
    ///
    /// # Errors
    /// [`InspectError::NoSession`] and [`InspectError::Failed`].
    ///
    /// # Cancel safety
    /// Nothing is changed.
    pub async fn inspect(&self, path: &LockPath) -> Result<Inspection, InspectError> {
        let path = path.clone();
        self.on_session(|session| async move { inspect::inspect(&session, &path).await })
            .await
    }

    /// Removes a contender of a lock, be it ours or not: the very one that
    /// the transaction [`czxid`](crate::Contender::czxid) created, and no other.
    ///
    /// For a holder that is dead although its session is not. If it lives, it learns that it has
    /// lost the lock, and the resources refuse what it still sends. Who, when, which and why is
    /// written below `<root>/fenced/audit` in the same transaction, and shown by
    /// [`inspect`](Self::inspect).
    ///
    /// # Errors
    /// [`InspectError::NotThere`], [`InspectError::NoSession`] and [`InspectError::Failed`].
    ///
    /// # Cancel safety
    /// What was sent is done.
    pub async fn break_lock(
        &self,
        path: &LockPath,
        czxid: i64,
        reason: &str,
    ) -> Result<Contender, InspectError> {
        let (path, reason) = (path.clone(), reason.to_owned());
        self.on_session(|session| async move {
            inspect::break_lock(&session, &path, czxid, &reason).await
        })
        .await
    }

    /// Asks a contender of a lock, be it ours or not, to give the lock back: the very one that the
    /// transaction [`czxid`](crate::Contender::czxid) created.
    ///
    /// What it does then is up to it. Ours sees it by
    /// [`revoke_requested`](fenced_core::FencedGuard::revoke_requested), a mutex of Curator's by
    /// the listener that made it revocable; other recipes do not look. What asks takes the place
    /// of the contender's label.
    ///
    /// # Errors
    /// [`InspectError::NotThere`], [`InspectError::NoSession`] and [`InspectError::Failed`].
    ///
    /// # Cancel safety
    /// What was sent is done.
    pub async fn ask_to_release(
        &self,
        path: &LockPath,
        czxid: i64,
    ) -> Result<Contender, InspectError> {
        let path = path.clone();
        self.on_session(
            |session| async move { inspect::ask_to_release(&session, &path, czxid).await },
        )
        .await
    }

    /// Runs a task on the thread of a session, within the connect timeout.
    async fn on_session<T, F>(
        &self,
        task: impl FnOnce(Arc<Session>) -> F,
    ) -> Result<T, InspectError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, InspectError>> + Send + 'static,
    {
        let status = self.inner.status(Some(0));
        let session = status.and_then(|it| it.session());
        let session = session.ok_or(InspectError::NoSession)?;
        let (sender, answer) = oneshot::channel();
        let task = task(Arc::clone(&session));
        let limit = session.settings.connect_timeout;
        session.spawn(async move {
            let done = tokio::time::timeout(limit, task).await;
            // Whoever asked may have gone.
            let _ = sender.send(done.unwrap_or_else(|_| Err(InspectError::too_late())));
        });
        drop(session);
        answer.await.unwrap_or(Err(InspectError::NoSession))
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

fn unreachable(
    settings: &Settings,
    began: Instant,
    cause: impl Into<fenced_core::BoxError>,
) -> ZkError {
    ZkError::Unreachable {
        servers: settings.address.servers.clone(),
        waited: began.elapsed(),
        cause: cause.into(),
    }
}

/// How long the names of contenders are, about.
const NAME_BYTES: usize = 60;

impl Inner {
    fn hosts(&self) -> MutexGuard<'_, Vec<Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

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
        let (place, new_on) =
            stand.map_err(|refusal| refusal.into_error(request.path, request.budget.waited()))?;
        if let Some(host) = new_on {
            self.serve(host, place.key().clone()).map_err(|error| {
                LockError::unavailable(request.path, request.budget.waited(), error)
            })?;
        }
        Ok(place)
    }

    fn serve(&self, host: usize, line: LineKey) -> std::io::Result<()> {
        let mut hosts = self.hosts();
        while hosts.len() <= host {
            let index = hosts.len();
            hosts.push(Host::start(index, &self.shared, None)?);
        }
        hosts[host].serve(line);
        Ok(())
    }

    fn status(&self, host: Option<usize>) -> Option<Arc<Status>> {
        self.hosts().get(host?).map(Host::status)
    }

    /// Why there was no answer in time.
    fn too_late(&self, request: &LockRequest<'_>, place: &Place) -> LockError {
        let waited = request.budget.waited();
        let status = self.status(place.host());
        let is_connected = status.as_ref().is_some_and(|it| it.is_connected());
        match place.queue() {
            Some(queue) if is_connected => LockError::timeout(request.path, waited, queue),
            _ => {
                let cause = status.map_or_else(|| "no session".to_owned(), |it| it.trouble());
                LockError::unavailable(request.path, waited, cause)
            }
        }
    }
}

#[async_trait]
impl LockService for ZkLocks {
    async fn acquire(&self, request: LockRequest<'_>) -> Result<Lease, LockError> {
        let mut place = self.inner.stand(&request)?;
        let limit = if request.budget.tries_once() {
            Instant::now() + self.inner.shared.settings.connect_timeout
        } else {
            request.budget.deadline()
        };
        match timeout_at(limit.into(), place.answer()).await {
            Ok(Ok(Ok(lease))) => Ok(lease),
            Ok(Ok(Err(refusal))) => Err(refusal.into_error(request.path, request.budget.waited())),
            Ok(Err(_)) => Err(LockError::closed(request.path)),
            Err(_) => Err(self.inner.too_late(&request, &place)),
        }
    }

    fn id(&self) -> ServiceId {
        ServiceId::of(&*self.inner)
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
