//! Entering the queue of a lock: one node of ours, known to be ours, and a list taken after it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fenced_core::LossReason;
use tokio::time::sleep;
use uuid::Uuid;
use zookeeper_client::{CreateMode, Error, Stat};

use crate::failure::Failure;
use crate::lines::Serving;
use crate::refusal::Refusal;
use crate::session::Session;
use crate::{name, parents};

/// A contender's node of this session.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) path: Arc<str>,
    pub(crate) czxid: i64,
    directory: usize,
}

/// A place in the queue.
pub(crate) struct Entry {
    pub(crate) node: Node,
    /// When the create was sent.
    pub(crate) sent: Instant,
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
}

impl Node {
    fn new(path: String, directory: &str, stat: &Stat) -> Self {
        Self {
            path: path.into(),
            czxid: stat.czxid,
            directory: directory.len(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.path[self.directory + 1..]
    }

    pub(crate) fn directory(&self) -> &str {
        &self.path[..self.directory]
    }

    /// Whether a node that was read at this path is this very one.
    pub(crate) fn is(&self, stat: &Stat, session: &Session) -> bool {
        stat.czxid == self.czxid && stat.ephemeral_owner == session.id
    }
}

/// Creates a node and lists its queue. What is left behind on an uncertain answer is found by its
/// id before anything else happens, so there is never more than one node.
pub(crate) async fn enter(
    session: &Session,
    serving: &Serving,
    directory: &str,
    label: &str,
) -> Result<Entry, NoEntry> {
    let name = name::prefix(Uuid::new_v4(), serving.key().is_shared());
    let attempt = Attempt {
        session,
        directory,
        prefix: format!("{directory}/{name}"),
        label: label.as_bytes(),
    };
    let mut uncertain = false;
    // A quorum has answered, or would have, at this time or later.
    let mut sent = Instant::now();
    let mut pause = Pause::default();
    loop {
        let epoch = tokio::select! {
            biased;
            epoch = session.connected() => epoch,
            () = serving.deserted(), if !uncertain => return Err(NoEntry::Deserted),
        };
        let entered = if uncertain {
            attempt.find().await
        } else if serving.is_deserted() {
            return Err(NoEntry::Deserted);
        } else {
            sent = Instant::now();
            attempt.create(sent).await
        };
        match entered {
            Ok(Some((node, children))) => {
                return Ok(Entry {
                    node,
                    sent,
                    epoch,
                    children,
                });
            }
            Ok(None) => uncertain = false,
            Err(Trouble::Uncertain) => uncertain = true,
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

impl Attempt<'_> {
    /// Sends both requests at once. `None` if there was no effect, and the next try may have one.
    async fn create(&self, sent: Instant) -> Result<Entered, Trouble> {
        let Session { client, .. } = self.session;
        let mode = CreateMode::EphemeralSequential;
        let options = self.session.settings.create(mode);
        let create = client.create(&self.prefix, self.label, &options);
        let list = client.list_children(self.directory);
        let created = self.session.answer(create).await;
        let children = self.session.answer(list).await;
        match created {
            Ok((stat, sequence)) => {
                self.session.prove(sent);
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
        let Some(name) = children.iter().find(|name| name.starts_with(own)) else {
            return Ok(None);
        };
        let path = format!("{}/{name}", self.directory);
        match self.session.answer(client.check_stat(&path)).await {
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

/// Ever longer pauses between tries; the first two come at once.
#[derive(Default)]
pub(crate) struct Pause {
    tries: u32,
}

impl Pause {
    const LONGEST: Duration = Duration::from_secs(1);

    pub(crate) async fn take(&mut self) {
        self.tries += 1;
        if let Some(doublings) = self.tries.checked_sub(3) {
            let pause = Duration::from_millis(5 << doublings.min(8));
            sleep(pause.min(Self::LONGEST)).await;
        }
    }
}
