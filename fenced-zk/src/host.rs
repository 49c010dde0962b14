//! The thread a session lives on, with a runtime of its own. When a session ends, it opens
//! another one and serves its lines on that.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use fenced_core::LossReason;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use zookeeper_client::{Client, Error, StateWatcher};

use crate::contender;
use crate::events::{Events, SessionEvent};
use crate::heartbeat::heartbeat;
use crate::lines::{LineKey, Lines};
use crate::nodelay;
use crate::pump::pump;
use crate::session::Session;
use crate::settings::Settings;

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

/// What all hosts of a lock service share.
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    pub(crate) lines: Arc<Lines>,
    pub(crate) events: Events,
    /// Whether to close.
    pub(crate) closing: watch::Sender<bool>,
}

/// What is known of a host's connection.
#[derive(Default)]
pub(crate) struct Status {
    session: Mutex<Weak<Session>>,
    trouble: Mutex<Option<Error>>,
}

/// The thread's end.
struct Thread {
    index: usize,
    shared: Arc<Shared>,
    lines: mpsc::UnboundedReceiver<LineKey>,
    status: Arc<Status>,
    /// Told of the first session, or why there is none within the connect timeout.
    opened: Option<Opened>,
}

/// Whoever waits for the first session.
pub(crate) type Opened = oneshot::Sender<Result<(), Error>>;

enum End {
    Again,
    Closed(Farewell),
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
        thread::Builder::new()
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

impl Status {
    /// Whether the server answers, as far as is known.
    pub(crate) fn is_connected(&self) -> bool {
        self.session().is_some_and(|it| it.link().connected)
    }

    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        locked(&self.session).upgrade()
    }

    /// What was seen last.
    pub(crate) fn trouble(&self) -> String {
        let trouble = locked(&self.trouble).clone();
        trouble.map_or_else(|| "no answer".to_owned(), |error| error.to_string())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Thread {
    /// The runtime goes with the session, and with it whatever the client still does.
    fn run(mut self) -> Farewell {
        loop {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else {
                thread::sleep(Duration::from_secs(1));
                continue;
            };
            let began = Instant::now();
            let end = runtime.block_on(self.open_and_live());
            runtime.shutdown_background();
            match end {
                End::Closed(farewell) => return farewell,
                End::Again if began.elapsed() < Duration::from_millis(500) => {
                    thread::sleep(Duration::from_millis(100));
                }
                End::Again => {}
            }
        }
    }

    async fn open_and_live(&mut self) -> End {
        let mut closing = self.shared.closing.subscribe();
        let limit = match &self.opened {
            Some(_) => self.shared.settings.connect_timeout,
            None => Duration::MAX,
        };
        let opened = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => return End::Closed(Ok(())),
            opened = timeout(limit, open(&self.shared.settings, &self.status)) => opened,
            () = abandoned(&mut self.lines) => return End::Closed(Ok(())),
        };
        let told = self.opened.take();
        let client = match opened {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Self::cannot_open(told, error),
            Err(_) => {
                let trouble = locked(&self.status.trouble).take();
                return Self::cannot_open(told, trouble.unwrap_or(Error::Timeout));
            }
        };
        self.live(client, told).await
    }

    fn cannot_open(told: Option<Opened>, error: Error) -> End {
        let Some(told) = told else { return End::Again };
        // Nobody may be waiting for it any longer.
        let _ = told.send(Err(error));
        End::Closed(Ok(()))
    }

    async fn live(&mut self, client: Client, told: Option<Opened>) -> End {
        let Shared {
            settings, events, ..
        } = &*Arc::clone(&self.shared);
        let states = client.state_watcher();
        let session = Arc::new(Session::new(client, Arc::clone(settings)));
        *locked(&self.status.session) = Arc::downgrade(&session);
        if told.is_some_and(|told| told.send(Ok(())).is_err()) {
            return End::Closed(self.close(session, states).await);
        }
        let mut closing = self.shared.closing.subscribe();
        for line in self.shared.lines.of_host(self.index) {
            self.serve(&session, &line);
        }
        let over = tokio::select! {
            reason = pump(&session, states.clone(), events) => Some(reason),
            reason = session.over() => Some(reason),
            never = heartbeat(&session) => match never {},
            _ = closing.wait_for(|closing| *closing) => None,
            () = self.take_lines(&session) => None,
        };
        let Some(reason) = over else {
            return End::Closed(self.close(session, states).await);
        };
        session.end(reason);
        events.tell(SessionEvent::Over(reason));
        let limit = session.farewell_limit().min(Duration::from_secs(1));
        let is_connected = session.link().connected;
        session.stop().await;
        drop(session);
        if is_connected {
            // What it could not tell the server, the server finds out by itself.
            let _ = closed(states, limit).await;
        }
        End::Again
    }

    async fn close(&self, session: Arc<Session>, states: StateWatcher) -> Farewell {
        session.end(LossReason::Closed);
        let limit = session.farewell_limit();
        session.stop().await;
        drop(session);
        closed(states, limit.min(self.shared.settings.connect_timeout)).await
    }

    fn serve(&self, session: &Arc<Session>, line: &LineKey) {
        if let Some(serving) = self.shared.lines.serve(line) {
            session.spawn(contender::serve(Arc::clone(session), serving));
        }
    }

    /// Serves new lines; ends when nobody can bring any, and all are done.
    async fn take_lines(&mut self, session: &Arc<Session>) {
        while let Some(line) = self.lines.recv().await {
            self.serve(session, &line);
        }
        while !session.is_idle() {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Waits until nobody can bring lines any longer. Those that come are found in the lines.
async fn abandoned(lines: &mut mpsc::UnboundedReceiver<LineKey>) {
    while lines.recv().await.is_some() {}
}

/// Opens a session, with one try after the other.
async fn open(settings: &Settings, status: &Status) -> Result<Client, Error> {
    // The client's own limit is the session timeout; on some networks it then loops for ever.
    let limit = settings.session_timeout * 3 / 4;
    loop {
        let connecting = settings.connector().connect(&settings.address.servers);
        let error = match timeout(limit, connecting).await {
            Ok(Ok(client)) => {
                *locked(&status.trouble) = None;
                nodelay::on_connections_to(settings.address.ports()).await;
                return Ok(client);
            }
            Ok(Err(error)) => error,
            Err(_) => Error::Timeout,
        };
        tracing::debug!(servers = settings.address.servers, %error, "no session yet");
        let is_final = matches!(error, Error::AuthFailed | Error::BadArguments(_));
        *locked(&status.trouble) = Some(error.clone());
        if is_final {
            return Err(error);
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until the server has confirmed the end of a session that nobody uses any longer.
async fn closed(mut states: StateWatcher, limit: Duration) -> Farewell {
    let ended = async {
        let mut state = states.state();
        while !state.is_terminated() {
            state = states.changed().await;
        }
    };
    timeout(limit, ended).await.map_err(|_| Unconfirmed)
}
