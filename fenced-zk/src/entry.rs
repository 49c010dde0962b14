//! Entering the queue of a lock: one node of ours, known to be ours, and a list taken after it.

use std::sync::Arc;
use std::time::Instant;

use fenced_core::{FencingToken, LossReason};
use uuid::Uuid;
use zookeeper_client::{CreateMode, Error, Stat};

use crate::failure::Failure;
use crate::lines::{LineKey, Serving};
use crate::node::Node;
use crate::pause::Pause;
use crate::refusal::Refusal;
use crate::session::Session;
use crate::{name, parents};

/// A place in the queue.
pub(crate) struct Entry {
    pub(crate) node: Node,
    /// When the create was sent.
    pub(crate) sent: Instant,
    /// The newest token known before that: the node's own must be newer.
    pub(crate) floor: Option<FencingToken>,
    /// The connection that answered.
    pub(crate) epoch: u64,
    /// The queue after the node was created, if the answer came.
    pub(crate) children: Option<Vec<String>>,
}

/// Why there is no place.
pub(crate) enum NoEntry {
    /// Nobody waits any longer.
    Deserted,
    Refused(Refusal),
}

/// An attempt to create one node. Its id tells the node from all others, whatever was answered.
struct Attempt<'a> {
    session: &'a Session,
    directory: &'a str,
    /// The node's path up to its sequence number.
    prefix: String,
    label: &'a [u8],
    floor: Option<FencingToken>,
    sent: Instant,
    /// Whether the node may be there.
    is_uncertain: bool,
}

/// Creates a node and lists its queue. What is left behind on an uncertain answer is found by its
/// id before anything else happens, so there is never more than one node.
pub(crate) async fn enter(
    session: &Session,
    serving: &Serving,
    directory: &str,
    label: &str,
) -> Result<Entry, NoEntry> {
    let mut attempt = Attempt::new(session, serving.key(), directory, label);
    let mut pause = Pause::default();
    loop {
        let epoch = attempt.connection(serving).await?;
        match attempt.proceed().await {
            Ok(Some((node, children))) => {
                return Ok(Entry {
                    node,
                    sent: attempt.sent,
                    floor: attempt.floor,
                    epoch,
                    children,
                });
            }
            Ok(None) => attempt.is_uncertain = false,
            Err(Trouble::Uncertain) => attempt.is_uncertain = true,
            Err(Trouble::Refused(refusal)) => return Err(NoEntry::Refused(refusal)),
        }
        pause.take().await;
    }
}

/// Why an attempt gave no node.
enum Trouble {
    /// It may have.
    Uncertain,
    Refused(Refusal),
}

type Entered = Option<(Node, Option<Vec<String>>)>;

impl<'a> Attempt<'a> {
    fn new(session: &'a Session, key: &LineKey, directory: &'a str, label: &'a str) -> Self {
        let name = name::prefix(Uuid::new_v4(), key.is_shared());
        Self {
            session,
            directory,
            prefix: format!("{directory}/{name}"),
            label: label.as_bytes(),
            floor: session.marks.floor(&key.path),
            sent: Instant::now(),
            is_uncertain: false,
        }
    }

    /// Waits for a connection, as long as somebody waits or the node may be there.
    async fn connection(&self, serving: &Serving) -> Result<u64, NoEntry> {
        tokio::select! {
            biased;
            epoch = self.session.connected() => {
                if !self.is_uncertain && serving.is_deserted() {
                    return Err(NoEntry::Deserted);
                }
                Ok(epoch)
            }
            () = serving.deserted(), if !self.is_uncertain => Err(NoEntry::Deserted),
        }
    }

    async fn proceed(&mut self) -> Result<Entered, Trouble> {
        if self.is_uncertain {
            return self.find().await;
        }
        // A quorum has answered, or would have, at this time or later.
        self.sent = Instant::now();
        self.create().await
    }

    /// Sends both requests at once. `None` if there was no effect, and the next try may have one.
    async fn create(&self) -> Result<Entered, Trouble> {
        let Session { client, .. } = self.session;
        let mode = CreateMode::EphemeralSequential;
        let options = self.session.settings.create(mode);
        let create = client.create(&self.prefix, self.label, &options);
        let list = client.list_children(self.directory);
        let created = self.session.answer(create).await;
        let children = self.session.answer(list).await;
        match created {
            Ok((stat, sequence)) => {
                self.session.prove(self.sent);
                let path = format!("{}{sequence}", self.prefix);
                self.take(path, &stat)
                    .map(|node| Some((node, children.ok())))
            }
            Err(Error::NoNode) => self.create_parents().await,
            Err(error) => self.trouble(error).map(|()| None),
        }
    }

    async fn create_parents(&self) -> Result<Entered, Trouble> {
        match parents::create(self.session, self.directory).await {
            Ok(()) | Err(Error::NoNode) => Ok(None),
            // A parent more or less is no harm: it is a container.
            Err(error) => match self.session.judge(&error) {
                Failure::Refused => Err(Trouble::Refused(Refusal::Server(error))),
                _ => Ok(None),
            },
        }
    }

    /// Looks for a node of this attempt. `None` if there is none, and will be none.
    async fn find(&self) -> Result<Entered, Trouble> {
        let Session { client, .. } = self.session;
        let sync = client.sync(self.directory);
        let list = client.list_children(self.directory);
        let synced = self.session.answer(sync).await;
        let listed = self.session.answer(list).await;
        let children = match (synced, listed) {
            (Err(Error::NoNode), _) | (_, Err(Error::NoNode)) => return Ok(None),
            (Ok(()), Ok(children)) => children,
            (Err(error), _) | (_, Err(error)) => {
                self.session.judge(&error);
                return Err(Trouble::Uncertain);
            }
        };
        let own = &self.prefix[self.directory.len() + 1..];
        match children.iter().find(|name| name.starts_with(own)) {
            Some(name) => {
                let path = format!("{}/{name}", self.directory);
                self.look_at(path, children).await
            }
            None => Ok(None),
        }
    }

    async fn look_at(&self, path: String, children: Vec<String>) -> Result<Entered, Trouble> {
        let stat = self.session.client.check_stat(&path);
        match self.session.answer(stat).await {
            Ok(None) => Ok(None),
            Ok(Some(stat)) => {
                let node = self.take(path, &stat)?;
                Ok(Some((node, Some(children))))
            }
            Err(error) => {
                self.session.judge(&error);
                Err(Trouble::Uncertain)
            }
        }
    }

    fn take(&self, path: String, stat: &Stat) -> Result<Node, Trouble> {
        if stat.ephemeral_owner != self.session.id {
            self.session.end(LossReason::SessionReplaced);
            return Err(Trouble::Uncertain);
        }
        let node = Node::new(path, self.directory, stat);
        self.session.own(Arc::clone(&node.path));
        Ok(node)
    }

    fn trouble(&self, error: Error) -> Result<(), Trouble> {
        match self.session.judge(&error) {
            Failure::Refused => Err(Trouble::Refused(Refusal::Server(error))),
            Failure::Postponed => Ok(()),
            Failure::Over | Failure::Unknown => Err(Trouble::Uncertain),
        }
    }
}
