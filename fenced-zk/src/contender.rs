//! The contender of one line: stands in ZooKeeper's queue as long as somebody stands in the line.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fenced_core::{FencingToken, Lease, Queue};
use tokio::time::sleep;
use uuid::Uuid;
use zookeeper_client::{Error, EventType, WatchedEvent};

use crate::entry::{self, Entry, NoEntry, Node};
use crate::failure::Failure;
use crate::heartbeat::{self, Checked};
use crate::lines::Serving;
use crate::own_watch::{OwnWatch, Seen};
use crate::queue::{self, Ahead, Standing};
use crate::refusal::Refusal;
use crate::session::{Held, Link, Session};
use crate::{holder, label, removal};

/// Takes the lock for one after the other in the line, until nobody stands in it.
pub(crate) async fn serve(session: Arc<Session>, mut serving: Serving) {
    let directory = session.settings.directory(serving.key().path.as_str());
    while let Some(label) = serving.first() {
        match entry::enter(&session, &serving, &directory, &label).await {
            Ok(entry) => contend(&session, &serving, entry, label).await,
            Err(NoEntry::Deserted) => {}
            Err(NoEntry::Refused(refusal)) => serving.refuse_all(&refusal),
        }
    }
}

struct Contender<'a> {
    session: &'a Arc<Session>,
    serving: &'a Serving,
    node: Node,
    /// When the last request was sent that proved the node.
    sent: Instant,
    /// The connection on which all that is known was learnt.
    epoch: u64,
    watch: OwnWatch,
    ahead: Option<Watched>,
    revoke_asked: bool,
}

/// The one in front, watched.
struct Watched {
    name: String,
    label: Option<String>,
    event: Pin<Box<dyn Future<Output = WatchedEvent> + Send>>,
}

/// What to do next.
enum Next {
    /// Look at the queue again.
    List,
    /// We are the first.
    Grant,
    /// The node is gone.
    Gone,
    /// Nobody waits any longer.
    Leave,
}

/// Waits until the node is the first, and holds the lock.
async fn contend(session: &Arc<Session>, serving: &Serving, entry: Entry, label: String) {
    let mut contender = Contender {
        session,
        serving,
        watch: OwnWatch::new(session, &entry.node),
        node: entry.node,
        sent: entry.sent,
        epoch: entry.epoch,
        ahead: None,
        revoke_asked: false,
    };
    let mut next = match entry.children {
        Some(children) => contender.look(&children).await,
        None => Next::List,
    };
    loop {
        next = match next {
            Next::List => contender.list().await,
            Next::Grant => match contender.prove().await {
                None => return contender.grant(label).await,
                Some(next) => next,
            },
            Next::Gone => return session.disown(&contender.node.path),
            Next::Leave => {
                return removal::remove(session, contender.node, Some(contender.watch), None);
            }
        }
    }
}

impl Contender<'_> {
    async fn list(&mut self) -> Next {
        self.epoch = self.session.connected().await;
        let listed = self.session.client.list_children(self.node.directory());
        match self.session.answer(listed).await {
            Ok(children) => self.look(&children).await,
            Err(Error::NoNode) => Next::Gone,
            Err(error) if self.session.judge(&error) == Failure::Refused => {
                self.serving.refuse_all(&Refusal::Server(error));
                Next::Leave
            }
            Err(_) => {
                self.session.settled().await;
                Next::List
            }
        }
    }

    async fn look(&mut self, children: &[String]) -> Next {
        if self.is_disturbed() {
            return Next::List;
        }
        match queue::standing(children, self.node.name()) {
            Standing::First => Next::Grant,
            Standing::Behind(ahead) => self.wait(ahead).await,
            Standing::Gone => Next::Gone,
            Standing::Exhausted => {
                self.serving.refuse_all(&Refusal::Exhausted);
                Next::Leave
            }
        }
    }

    /// Whether what was learnt may have changed with the connection.
    fn is_disturbed(&self) -> bool {
        let undisturbed = Link {
            connected: true,
            epoch: self.epoch,
        };
        self.session.link() != undisturbed
    }

    async fn wait(&mut self, ahead: Ahead<'_>) -> Next {
        if let Err(next) = self.watch(&ahead).await {
            return next;
        }
        let Some(watched) = &mut self.ahead else {
            return Next::List;
        };
        let mut queue = Queue::default().ahead(ahead.count);
        queue.holder = watched.label.clone().filter(|_| ahead.count == 1);
        self.serving.saw(queue);
        self.serving.refuse_impatient();
        tokio::select! {
            biased;
            seen = self.watch.see() => self.saw(seen),
            event = &mut watched.event => self.predecessor_changed(event, ahead.decides).await,
            () = self.session.disturbed(self.epoch) => Next::List,
            () = self.serving.deserted() => Next::Leave,
            () = sleep(list_again_after()) => Next::List,
        }
    }

    /// Watches the one in front, and our own node.
    async fn watch(&mut self, ahead: &Ahead<'_>) -> Result<(), Next> {
        if self
            .ahead
            .as_ref()
            .is_some_and(|it| it.name == ahead.predecessor)
        {
            return Ok(());
        }
        let path = format!("{}/{}", self.node.directory(), ahead.predecessor);
        let client = &self.session.client;
        let read = tokio::select! {
            biased;
            seen = self.watch.see() => return Err(self.saw(seen)),
            read = async { self.session.answer(client.get_and_watch_data(&path)).await } => read,
        };
        match read {
            Ok((data, _, watcher)) => {
                self.ahead = Some(Watched {
                    name: ahead.predecessor.to_owned(),
                    label: label::read(&data),
                    event: Box::pin(watcher.changed()),
                });
                Ok(())
            }
            Err(Error::NoNode) => Err(Next::List),
            Err(error) if self.session.judge(&error) == Failure::Refused => {
                self.serving.refuse_all(&Refusal::Server(error));
                Err(Next::Leave)
            }
            Err(_) => {
                self.session.settled().await;
                Err(Next::List)
            }
        }
    }

    fn saw(&mut self, seen: Seen) -> Next {
        match seen {
            Seen::Gone => Next::Gone,
            Seen::RevokeAsked => {
                self.revoke_asked = true;
                Next::List
            }
        }
    }

    /// New contenders only come behind us, so the deletion of the only one in front makes us the
    /// first: unless our own node had gone before, which its watch would have told first.
    async fn predecessor_changed(&mut self, event: WatchedEvent, decides: bool) -> Next {
        self.ahead = None;
        match event.event_type {
            EventType::Session => std::future::pending().await,
            EventType::NodeDeleted if decides && self.watch.is_armed() && !self.is_disturbed() => {
                Next::Grant
            }
            _ => Next::List,
        }
    }

    /// Makes sure that the session was alive a moment ago; says what to do instead if it was not.
    async fn prove(&mut self) -> Option<Next> {
        self.sent = self
            .session
            .proven()
            .map_or(self.sent, |proven| proven.max(self.sent));
        if self.sent.elapsed() > self.session.timeout() / 3 {
            let sent = Instant::now();
            let nodes = [Arc::clone(&self.node.path)];
            let checked = heartbeat::check(self.session, &nodes);
            match self.session.answer(checked).await {
                Ok(()) => {
                    self.session.prove(sent);
                    self.sent = sent;
                }
                Err(Checked::Gone(_)) => return Some(Next::Gone),
                Err(Checked::Unknown) => {
                    self.session.settled().await;
                    return Some(Next::List);
                }
            }
        }
        self.is_disturbed().then_some(Next::List)
    }

    async fn grant(self, label: String) {
        let token = FencingToken::try_from(self.node.czxid);
        let answer = token.map(|token| self.serving.take().map(|answer| (token, answer)));
        let (token, answer) = match answer {
            Ok(Some(granted)) => granted,
            Ok(None) => return self.leave(),
            Err(_) => {
                self.serving.refuse_all(&Refusal::Token(self.node.czxid));
                return self.leave();
            }
        };
        let path = self.serving.key().path.clone();
        let (handle, ends) = holder::handle();
        let deadline = self.sent + self.session.lease_span();
        let (lease, control) = Lease::grant(path, token, deadline, handle);
        if self.revoke_asked {
            control.ask_to_release();
        }
        let held = Held {
            lease: control.clone(),
            proven: self.sent,
        };
        self.session.hold(&self.node.path, held);
        self.serving.saw(Queue::default().ahead(1).holder(label));
        // Whoever has gone meanwhile drops the lease, and so frees the lock.
        drop(answer.send(Ok(lease)));
        holder::hold(self.session, self.node, self.watch, control, ends).await;
    }

    fn leave(self) {
        removal::remove(self.session, self.node, Some(self.watch), None);
    }
}

/// A guard against a watch that was lost. Apart for all contenders.
fn list_again_after() -> Duration {
    let random = Uuid::new_v4().as_u128() % 20_000;
    Duration::from_secs(20) + Duration::from_millis(u64::try_from(random).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<F>(_: impl FnOnce(Arc<Session>, Serving) -> F) -> usize {
        size_of::<F>()
    }

    /// A process may stand in thousands of queues.
    #[test]
    fn a_contender_stays_small() {
        let bytes = size(serve);
        assert!(bytes <= 2_048, "{bytes} bytes");
    }
}
