mod book;
mod link;

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fenced_core::LossReason;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use zookeeper_client::{Client, Error};

use crate::base::Base;
use crate::failure::Failure;
use crate::marks::Marks;
use crate::settings::Settings;
use book::Book;
use link::Link;

pub(crate) use book::Held;

/// One session with the ensemble. It lives on its host's thread; all its tasks end with it.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) id: i64,
    pub(crate) settings: Arc<Settings>,
    pub(crate) marks: Arc<Marks>,
    pub(crate) base: watch::Sender<Base>,
    link: watch::Sender<Link>,
    book: Mutex<Book>,
    /// Told when the first node of several is held.
    pub(crate) first_held: Notify,
    over: watch::Sender<Option<LossReason>>,
    tasks: Mutex<JoinSet<()>>,
    runtime: Handle,
}

impl Session {
    pub(crate) fn new(client: Client, settings: Arc<Settings>, marks: Arc<Marks>) -> Self {
        Self {
            id: client.session_id().0,
            client,
            settings,
            marks,
            base: watch::Sender::default(),
            link: watch::Sender::new(Link::undisturbed(0)),
            book: Mutex::default(),
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
        let reason = self.over.borrow().unwrap_or(reason);
        for held in self.held().into_values() {
            held.lease.lose(reason);
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

    /// Whether no task runs but the one that follows the base.
    pub(crate) fn is_idle(&self) -> bool {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.len() <= 1
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
