use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fenced_core::{LeaseControl, LossReason};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use zookeeper_client::{Client, Error};

use crate::failure::Failure;
use crate::settings::Settings;

/// One session with the ensemble. It lives on its host's thread; all its tasks end with it.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) id: i64,
    pub(crate) settings: Arc<Settings>,
    link: watch::Sender<Link>,
    book: Mutex<Book>,
    /// Told when the first node of several is held.
    pub(crate) first_held: Notify,
    over: watch::Sender<Option<LossReason>>,
    tasks: Mutex<JoinSet<()>>,
    runtime: Handle,
}

/// Whether requests reach the server, and how often that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) connected: bool,
    /// One more after each reconnection.
    pub(crate) epoch: u64,
}

/// The contenders' nodes of the session.
struct Book {
    nodes: HashMap<Arc<str>, Option<Held>>,
    /// When the last request was sent that a quorum answered.
    proven: Option<Instant>,
    /// When a lost connection is not awaited any longer.
    given_up_at: Option<Instant>,
}

/// A node whose contender holds the lock.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) lease: LeaseControl,
    /// When the last request was sent that proved the node to be there.
    pub(crate) proven: Instant,
}

impl Session {
    pub(crate) fn new(client: Client, settings: Arc<Settings>) -> Self {
        Self {
            id: client.session_id().0,
            client,
            settings,
            link: watch::Sender::new(Link {
                connected: true,
                epoch: 0,
            }),
            book: Mutex::new(Book {
                nodes: HashMap::new(),
                proven: None,
                given_up_at: None,
            }),
            first_held: Notify::new(),
            over: watch::Sender::new(None),
            tasks: Mutex::default(),
            runtime: Handle::current(),
        }
    }

    /// The timeout the server has granted.
    pub(crate) fn timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    /// How long a lease lasts after the sending of what proved it: a tenth of the timeout is left
    /// for clocks that run apart.
    pub(crate) fn lease_span(&self) -> Duration {
        self.timeout() * 9 / 10
    }

    pub(crate) fn link(&self) -> Link {
        *self.link.borrow()
    }

    pub(crate) fn set_connected(&self, connected: bool) {
        if connected {
            self.book().given_up_at = None;
        }
        self.link.send_modify(|link| {
            link.epoch += u64::from(connected);
            link.connected = connected;
        });
    }

    /// Waits for a connection, and says which.
    pub(crate) async fn connected(&self) -> u64 {
        let mut link = self.link.subscribe();
        let connected = link.wait_for(|link| link.connected).await;
        match connected.map(|link| link.epoch) {
            Ok(epoch) => epoch,
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits for a connection after a request failed, which may be known sooner here than there.
    pub(crate) async fn settled(&self) {
        sleep(Duration::from_millis(10)).await;
        self.connected().await;
    }

    /// Waits until the connection is another one than `epoch`, or none.
    pub(crate) async fn disturbed(&self, epoch: u64) {
        let mut link = self.link.subscribe();
        let undisturbed = Link {
            connected: true,
            epoch,
        };
        let _ = link.wait_for(|link| *link != undisturbed).await;
    }

    /// Waits for the answer to a request, which on its own may never come.
    pub(crate) async fn answer<T, E: From<Error>>(
        &self,
        request: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let answer = timeout(self.timeout() / 3, request).await;
        answer.unwrap_or_else(|_| Err(Error::Timeout.into()))
    }

    /// Takes note of a request that failed; says what that means for it.
    pub(crate) fn judge(&self, error: &Error) -> Failure {
        let failure = Failure::of(error);
        if failure == Failure::Over {
            self.end(LossReason::SessionExpired);
        }
        failure
    }

    /// Ends the session for all who use it. The first reason counts.
    pub(crate) fn end(&self, reason: LossReason) {
        self.over.send_if_modified(|over| {
            let is_first = over.is_none();
            over.get_or_insert(reason);
            is_first
        });
        for held in self.held().into_values() {
            held.lease.lose(over_reason(&self.over));
        }
    }

    /// Waits for the end of the session.
    pub(crate) async fn over(&self) -> LossReason {
        let mut over = self.over.subscribe();
        let reason = over.wait_for(Option::is_some).await.map(|reason| *reason);
        match reason {
            Ok(Some(reason)) => reason,
            _ => std::future::pending().await,
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A quorum has answered what was sent at `sent`.
    pub(crate) fn prove(&self, sent: Instant) {
        let mut book = self.book();
        book.proven = book.proven.max(Some(sent));
    }

    pub(crate) fn proven(&self) -> Option<Instant> {
        self.book().proven
    }

    /// How long a connection is awaited before the session counts as over. All its leases have
    /// ended by then. The client's own patience ends later, on some networks in a busy loop.
    fn patience(&self) -> Duration {
        self.timeout() * 17 / 20
    }

    /// When the session counts as over, if it is not connected until then.
    pub(crate) fn given_up_at(&self) -> Instant {
        let longest = Instant::now() + self.patience();
        *self.book().given_up_at.get_or_insert(longest)
    }

    /// How long the end of the session may be awaited.
    pub(crate) fn farewell_limit(&self) -> Duration {
        self.given_up_at().saturating_duration_since(Instant::now())
    }

    /// The node belongs to this session from now on.
    pub(crate) fn own(&self, node: Arc<str>) {
        self.book().nodes.insert(node, None);
    }

    pub(crate) fn disown(&self, node: &str) {
        self.book().nodes.remove(node);
    }

    pub(crate) fn hold(&self, node: &Arc<str>, held: Held) {
        self.book().nodes.insert(Arc::clone(node), Some(held));
        self.first_held.notify_one();
    }

    /// The nodes of the session, held and waiting.
    pub(crate) fn nodes(&self) -> Vec<Arc<str>> {
        self.book().nodes.keys().cloned().collect()
    }

    pub(crate) fn held(&self) -> HashMap<Arc<str>, Held> {
        let held =
            |(node, held): (&Arc<str>, &Option<Held>)| Some((Arc::clone(node), held.clone()?));
        self.book().nodes.iter().filter_map(held).collect()
    }

    /// The least recent proof of a held node.
    pub(crate) fn oldest_proof(&self) -> Option<Instant> {
        let book = self.book();
        book.nodes.values().flatten().map(|held| held.proven).min()
    }

    /// The held node was there when what was sent at `sent` reached the server.
    pub(crate) fn renew(&self, node: &str, sent: Instant) {
        if let Some(Some(held)) = self.book().nodes.get_mut(node) {
            held.proven = held.proven.max(sent);
            held.lease.extend(sent + self.lease_span());
        }
    }

    /// The node is not there any longer.
    pub(crate) fn lose(&self, node: &str, reason: LossReason) {
        let held = self.book().nodes.get(node).cloned().flatten();
        if let Some(held) = held {
            held.lease.lose(reason);
        }
    }

    /// Runs a task until it is done or the session is over.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(done) = tasks.try_join_next() {
            if done.is_err_and(|error| error.is_panic()) {
                // What it left behind goes with the session.
                self.end(LossReason::SessionExpired);
            }
        }
        // Whoever calls may be on another runtime.
        tasks.spawn_on(task, &self.runtime);
    }

    /// Whether no task runs.
    pub(crate) fn is_idle(&self) -> bool {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.is_empty()
    }

    /// Drops all tasks.
    pub(crate) async fn stop(&self) {
        let mut tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        tasks.shutdown().await;
    }
}

fn over_reason(over: &watch::Sender<Option<LossReason>>) -> LossReason {
    over.borrow().unwrap_or(LossReason::SessionExpired)
}
