//! The contender of one line: stands in ZooKeeper's queue as long as somebody stands in the line.

mod grant;
mod predecessor;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fenced_core::{FencingToken, Queue};
use tokio::time::sleep;
use zookeeper_client::Error;

use crate::entry::{self, Entry, NoEntry};
use crate::failure::Failure;
use crate::holder::{self, Grant};
use crate::lines::Serving;
use crate::node::Node;
use crate::own_watch::{OwnWatch, Seen};
use crate::queue::{self, Standing};
use crate::refusal::Refusal;
use crate::session::Session;
use predecessor::{Change, Predecessor, apart};

pub(crate) use predecessor::NAME_BYTES;

/// Takes the lock for one after the other in the line, until nobody stands in it.
pub(crate) async fn serve(session: Arc<Session>, mut serving: Serving) {
    let directory = session.settings.directory(serving.key().path.as_str());
    while let Some(label) = serving.first() {
        // Boxed, as all that is soon over: a process may stand in thousands of queues.
        let entered = Box::pin(entry::enter(&session, &serving, &directory, &label));
        match entered.await {
            Ok(entry) => {
                let contender = Contender::new(&session, &serving, entry);
                if let Some(grant) = Box::pin(contender.contend(label)).await {
                    holder::hold(&session, grant).await;
                }
            }
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
    /// The queue after the node was created, if the answer came.
    listed: Option<Vec<String>>,
    ahead: Option<Predecessor>,
    /// The newest token known before the node was created.
    floor: Option<FencingToken>,
    revoke_asked: bool,
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

impl<'a> Contender<'a> {
    fn new(session: &'a Arc<Session>, serving: &'a Serving, entry: Entry) -> Self {
        Self {
            session,
            serving,
            watch: OwnWatch::new(session, &entry.node),
            node: entry.node,
            sent: entry.sent,
            floor: entry.floor,
            epoch: entry.epoch,
            listed: entry.children,
            ahead: None,
            revoke_asked: false,
        }
    }

    /// Waits until the node is the first, and takes the lock. `None` if that is not to be.
    async fn contend(mut self, label: String) -> Option<Grant> {
        let mut next = match self.listed.take() {
            Some(children) => self.look(children).await,
            None => Next::List,
        };
        loop {
            next = match next {
                Next::List => self.list().await,
                Next::Grant => match Box::pin(self.prepare()).await {
                    Ok(token) => return self.grant(token, label),
                    Err(next) => next,
                },
                Next::Gone => {
                    self.session.disown(&self.node.path);
                    return None;
                }
                Next::Leave => {
                    self.leave();
                    return None;
                }
            }
        }
    }

    async fn list(&mut self) -> Next {
        match Box::pin(self.children()).await {
            Ok(children) => self.look(children).await,
            Err(next) => next,
        }
    }

    async fn children(&mut self) -> Result<Vec<String>, Next> {
        self.epoch = self.session.connected().await;
        let listed = self.session.client.list_children(self.node.directory());
        match self.session.answer(listed).await {
            Ok(children) => Ok(children),
            Err(Error::NoNode) => Err(Next::Gone),
            Err(error) => Err(self.failed(error).await),
        }
    }

    async fn look(&mut self, children: Vec<String>) -> Next {
        // What was learnt may have changed with the connection.
        if self.session.is_disturbed(self.epoch) {
            return Next::List;
        }
        let ahead = match queue::standing(&children, self.node.name()) {
            Standing::First => return Next::Grant,
            Standing::Behind(ahead) => ahead,
            Standing::Gone => return Next::Gone,
            Standing::Exhausted => return self.refuse(&Refusal::Exhausted),
        };
        let (count, decides) = (ahead.count, ahead.decides);
        if let Err(next) = Box::pin(self.watch(ahead.predecessor, decides)).await {
            return next;
        }
        // A long queue is not kept while it is waited for.
        drop(children);
        self.wait(count, decides).await
    }

    async fn wait(&mut self, count: usize, decides: bool) -> Next {
        let Some(watched) = &mut self.ahead else {
            return Next::List;
        };
        let mut queue = Queue::default().ahead(count);
        queue.holder = watched.label.clone().filter(|_| count == 1);
        self.serving.saw(queue);
        self.serving.refuse_impatient();
        tokio::select! {
            biased;
            seen = self.watch.see_after(watch_after(decides)) => self.saw(seen),
            change = watched.changed() => self.predecessor_changed(change, decides),
            () = self.session.disturbed(self.epoch) => Next::List,
            () = self.serving.deserted() => Next::Leave,
            () = sleep(apart(LIST_AGAIN_AFTER)) => Next::List,
        }
    }

    /// Watches the one in front, and our own node.
    async fn watch(&mut self, predecessor: &str, decides: bool) -> Result<(), Next> {
        let is_same = |it: &Predecessor| it.name == predecessor;
        if self.ahead.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let watching = Predecessor::watch(self.session, self.node.directory(), predecessor);
        let watched = tokio::select! {
            biased;
            seen = self.watch.see_after(watch_after(decides)) => return Err(self.saw(seen)),
            watched = watching => watched,
        };
        match watched {
            Ok(watched) => {
                self.ahead = Some(watched);
                Ok(())
            }
            Err(Error::NoNode) => Err(Next::List),
            Err(error) => Err(self.failed(error).await),
        }
    }

    async fn failed(&mut self, error: Error) -> Next {
        if self.session.judge(&error) == Failure::Refused {
            return self.refuse(&Refusal::Server(error));
        }
        self.session.settled().await;
        Next::List
    }

    fn refuse(&self, refusal: &Refusal) -> Next {
        self.serving.refuse_all(refusal);
        Next::Leave
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
    fn predecessor_changed(&mut self, change: Change, decides: bool) -> Next {
        self.ahead = None;
        let is_sure = decides && self.watch.is_armed() && !self.session.is_disturbed(self.epoch);
        match change {
            Change::Gone if is_sure => Next::Grant,
            _ => Next::List,
        }
    }
}

/// How long a contender waits before the watch on its own node is worth its price. Whoever is not
/// the next lists again before it is the first, and sees its node then.
fn watch_after(is_next: bool) -> Duration {
    if is_next {
        Duration::ZERO
    } else {
        Duration::from_millis(50)
    }
}

/// A guard against a watch that was lost.
const LIST_AGAIN_AFTER: Duration = Duration::from_secs(20);

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
        assert!(bytes <= 1_280, "{bytes} bytes");
    }
}
