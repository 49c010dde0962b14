//! The thread a session lives on, with a runtime of its own. When a session ends, it opens
//! another one and serves its lines on that.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fenced_core::LossReason;
use tokio::runtime;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use zookeeper_client::{Client, StateWatcher};

use super::opening::open;
use super::{Farewell, Opened, Shared, Status, Unconfirmed, locked};
use crate::events::SessionEvent;
use crate::heartbeat::heartbeat;
use crate::lines::LineKey;
use crate::pump::pump;
use crate::session::Session;
use crate::{base, contender};

pub(super) struct Thread {
    pub(super) index: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) lines: mpsc::UnboundedReceiver<LineKey>,
    pub(super) status: Arc<Status>,
    /// Told of the first session, or why there is none within the connect timeout.
    pub(super) opened: Option<Opened>,
}

enum End {
    Again,
    Closed(Farewell),
}

impl Thread {
    /// The runtime goes with the session, and with it whatever the client still does.
    pub(super) fn run(mut self) -> Farewell {
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
        let settings = &self.shared.settings;
        let limit = self.opened.as_ref().map(|_| settings.connect_timeout);
        let deadline = limit.map(|limit| tokio::time::Instant::now() + limit);
        let opened = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => return End::Closed(Ok(())),
            opened = open(settings, &self.status, deadline) => opened,
            () = abandoned(&mut self.lines) => return End::Closed(Ok(())),
        };
        let told = self.opened.take();
        match (opened, told) {
            (Ok(client), told) => self.live(client, told).await,
            (Err(error), Some(told)) => {
                // Nobody may be waiting for it any longer.
                let _ = told.send(Err(error));
                End::Closed(Ok(()))
            }
            (Err(_), None) => End::Again,
        }
    }

    async fn live(&mut self, client: Client, told: Option<Opened>) -> End {
        let states = client.state_watcher();
        let shared = &self.shared;
        let (settings, marks) = (Arc::clone(&shared.settings), Arc::clone(&shared.marks));
        let session = Arc::new(Session::new(client, settings, marks));
        session.spawn(base::follow(Arc::clone(&session)));
        *locked(&self.status.session) = Arc::downgrade(&session);
        self.shared.granted(session.timeout());
        if told.is_some_and(|told| told.send(Ok(())).is_err()) {
            return End::Closed(self.close(session, states).await);
        }
        for line in self.shared.lines.of_host(self.index) {
            self.serve(&session, &line);
        }
        match self.over(&session, &states).await {
            Some(reason) => {
                self.bury(session, states, reason).await;
                End::Again
            }
            None => End::Closed(self.close(session, states).await),
        }
    }

    /// Serves lines on the session until it is over; `None` if it is to be closed.
    async fn over(&mut self, session: &Arc<Session>, states: &StateWatcher) -> Option<LossReason> {
        let shared = Arc::clone(&self.shared);
        let mut closing = shared.closing.subscribe();
        tokio::select! {
            reason = pump(session, states.clone(), &shared.events) => Some(reason),
            reason = session.over() => Some(reason),
            never = heartbeat(session) => match never {},
            _ = closing.wait_for(|closing| *closing) => None,
            () = self.take_lines(session) => None,
        }
    }

    /// Ends what is left of a session that is over.
    async fn bury(&self, session: Arc<Session>, states: StateWatcher, reason: LossReason) {
        session.end(reason);
        self.shared.events.tell(SessionEvent::Over(reason));
        let limit = session.farewell_limit().min(Duration::from_secs(1));
        let is_connected = session.link().connected;
        session.stop().await;
        drop(session);
        if is_connected {
            // What it could not tell the server, the server finds out by itself.
            let _ = closed(states, limit).await;
        }
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
