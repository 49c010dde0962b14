//! The watch on a contender's own node: nobody else would tell that it was deleted.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use zookeeper_client::{Error, EventType, OneshotWatcher, Stat, WatchedEvent};

use crate::node::Node;
use crate::session::Session;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Read = Result<(Vec<u8>, Stat, OneshotWatcher), Error>;

/// What is written into the node of a holder who is asked for the lock, by Curator's peers too.
pub(crate) const REVOKE: &[u8] = b"__REVOKE__";

/// What the watch has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The node is gone, or not ours.
    Gone,
    /// Somebody asks for the lock.
    RevokeAsked,
}

pub(crate) struct OwnWatch {
    session: Arc<Session>,
    node: Node,
    stage: Stage,
}

enum Stage {
    Unarmed,
    Arming(Boxed<Read>),
    Armed(Boxed<WatchedEvent>),
    /// The session is over, and soon this watch.
    Over,
}

impl OwnWatch {
    pub(crate) fn new(session: &Arc<Session>, node: &Node) -> Self {
        Self {
            session: Arc::clone(session),
            node: node.clone(),
            stage: Stage::Unarmed,
        }
    }

    pub(crate) fn is_armed(&self) -> bool {
        matches!(self.stage, Stage::Armed(_))
    }

    /// As [`see`](Self::see), but arms the watch only after a while.
    pub(crate) async fn see_after(&mut self, while_unarmed: Duration) -> Seen {
        // A sleep of nothing would last a millisecond.
        if matches!(self.stage, Stage::Unarmed) && !while_unarmed.is_zero() {
            sleep(while_unarmed).await;
        }
        self.see().await
    }

    /// Arms the watch and waits for what it sees.
    ///
    /// # Cancel safety
    /// The watch stays as it is when the future is dropped.
    pub(crate) async fn see(&mut self) -> Seen {
        loop {
            match &mut self.stage {
                Stage::Unarmed => self.stage = Stage::Arming(self.arm()),
                Stage::Arming(read) => {
                    let read = read.await;
                    self.stage = Stage::Unarmed;
                    if let Some(seen) = self.read(read).await {
                        return seen;
                    }
                }
                Stage::Armed(event) => match event.await.event_type {
                    EventType::NodeDeleted => {
                        self.stage = Stage::Unarmed;
                        return Seen::Gone;
                    }
                    EventType::Session => self.stage = Stage::Over,
                    _ => self.stage = Stage::Unarmed,
                },
                Stage::Over => std::future::pending().await,
            }
        }
    }

    async fn read(&mut self, read: Read) -> Option<Seen> {
        match read {
            Ok((_, stat, _)) if !self.node.is(&stat, &self.session) => Some(Seen::Gone),
            Ok((data, _, watcher)) => {
                self.stage = Stage::Armed(Box::pin(watcher.changed()));
                (data == REVOKE).then_some(Seen::RevokeAsked)
            }
            Err(Error::NoNode) => Some(Seen::Gone),
            Err(error) => {
                self.session.judge(&error);
                Box::pin(self.session.settled()).await;
                None
            }
        }
    }

    fn arm(&self) -> Boxed<Read> {
        let session = Arc::clone(&self.session);
        let path = Arc::clone(&self.node.path);
        Box::pin(async move {
            session.connected().await;
            let read = session.client.get_and_watch_data(&path);
            session.answer(read).await
        })
    }
}
