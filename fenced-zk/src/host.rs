//! The thread a session lives on, seen from the lock service.

mod opening;
mod thread;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use crate::ZkError;
use crate::events::Events;
use crate::lines::{LineKey, Lines};
use crate::marks::Marks;
use crate::reach::Trouble;
use crate::session::Session;
use crate::settings::Settings;
use thread::Thread;

/// A lock service's end of a host; dropping it closes the session once nothing is held on it.
pub(crate) struct Host {
    lines: mpsc::UnboundedSender<LineKey>,
    status: Arc<Status>,
    farewell: watch::Receiver<Option<Farewell>>,
}

/// Whether the server confirmed the end of the last session.
pub(crate) type Farewell = Result<(), Unconfirmed>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Unconfirmed;

/// Whoever waits for the first session.
pub(crate) type Opened = oneshot::Sender<Result<(), ZkError>>;

/// What all hosts of a lock service share.
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    pub(crate) lines: Arc<Lines>,
    pub(crate) marks: Arc<Marks>,
    pub(crate) events: Events,
    /// Whether to close.
    pub(crate) closing: watch::Sender<bool>,
    granted_timeout: Mutex<Duration>,
}

/// What is known of a host's connection.
#[derive(Default)]
pub(crate) struct Status {
    session: Mutex<Weak<Session>>,
    trouble: Mutex<Option<Trouble>>,
}

impl Host {
    /// Starts the thread. Without `opened` it tries for ever.
    pub(crate) fn start(
        index: usize,
        shared: &Arc<Shared>,
        opened: Option<Opened>,
    ) -> io::Result<Self> {
        let (sender, lines) = mpsc::unbounded_channel();
        let (said, farewell) = watch::channel(None);
        let status = Arc::<Status>::default();
        let thread = Thread {
            index,
            shared: Arc::clone(shared),
            lines,
            status: Arc::clone(&status),
            opened,
        };
        std::thread::Builder::new()
            .name("fenced-zk".to_owned())
            .spawn(move || said.send_replace(Some(thread.run())))?;
        Ok(Self {
            lines: sender,
            status,
            farewell,
        })
    }

    /// Has the line served, on this session or the next.
    pub(crate) fn serve(&self, line: LineKey) {
        // A thread that has ended was told to; its lines are closed.
        let _ = self.lines.send(line);
    }

    pub(crate) fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status)
    }

    pub(crate) fn farewell(&self) -> watch::Receiver<Option<Farewell>> {
        self.farewell.clone()
    }
}

impl Shared {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            granted_timeout: Mutex::new(settings.session_timeout),
            settings: Arc::new(settings),
            lines: Arc::default(),
            marks: Arc::default(),
            events: Events::new(),
            closing: watch::Sender::new(false),
        }
    }

    /// The timeout of the latest session.
    pub(crate) fn granted_timeout(&self) -> Duration {
        *locked(&self.granted_timeout)
    }

    fn granted(&self, timeout: Duration) {
        let before = std::mem::replace(&mut *locked(&self.granted_timeout), timeout);
        if timeout != before {
            let asked = self.settings.session_timeout;
            tracing::warn!(
                servers = self.settings.address.servers,
                ?asked,
                granted = ?timeout,
                "the server changed the session timeout: see its minSessionTimeout and maxSessionTimeout"
            );
        }
    }
}

impl Status {
    /// Whether the server answers, as far as is known.
    pub(crate) fn is_connected(&self) -> bool {
        self.session().is_some_and(|it| it.link().connected)
    }

    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        locked(&self.session).upgrade()
    }

    /// What was seen last.
    pub(crate) fn trouble(&self) -> Trouble {
        locked(&self.trouble).clone().unwrap_or_default()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
