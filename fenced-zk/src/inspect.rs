//! Who stands in a lock's queue, and how an operator removes one of them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fenced_core::LockPath;
use zookeeper_client::{Error, MultiWriteError};

use crate::audit::{self, Entry};
use crate::name::{self, Kind};
use crate::own_watch::REVOKE;
use crate::session::Session;
use crate::{InspectError, label};

/// What stands in the directory of a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The queue, the holder first.
    pub contenders: Vec<Contender>,
    /// Children that are no contenders. Some of them block Curator's recipes, none of them us.
    pub foreign: Vec<String>,
    /// Who was removed by [`break_lock`](crate::ZkLocks::break_lock), the latest last: at most a
    /// hundred entries, each of one line and cut at two kilobytes. Text of other processes, to be
    /// shown and not to be trusted.
    pub broken: Vec<String>,
    /// When the tokens of this root were given another base by
    /// [`rebase`](crate::ZkLocks::rebase), in the same way.
    pub rebased: Vec<String>,
}

/// One place in a lock's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contender {
    /// The name of its node.
    pub name: String,
    /// Which recipe made it.
    pub kind: ContenderKind,
    /// Its number in the queue.
    pub sequence: i64,
    /// The id of the transaction that created it: its token, once it holds the lock.
    pub czxid: i64,
    /// The session it ends with; zero if it does not end with any.
    pub session: i64,
    /// Who it says it is. Text of another process, to be shown and not to be trusted.
    pub label: Option<String>,
    /// How long it has been there, by the clocks of the server and of this machine.
    pub age: Duration,
}

/// A recipe that queues in a lock's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContenderKind {
    /// A lock of ours, or Curator's mutex.
    Lock,
    /// Curator's leader latch.
    Latch,
    /// A lock or writer of Kazoo's.
    KazooLock,
    /// A reader of Kazoo's.
    KazooReader,
    /// A shared lock of ours, or a reader of Curator's.
    Reader,
    /// A writer of Curator's.
    Writer,
}

/// Looks at a lock's queue without standing in it.
pub(crate) async fn inspect(
    session: &Arc<Session>,
    path: &LockPath,
) -> Result<Inspection, InspectError> {
    session.connected().await;
    let directory = session.settings.directory(path.as_str());
    let mut inspection = Inspection::default();
    let mut places = Vec::new();
    for name in children(session, &directory).await? {
        match name::Contender::parse(&name) {
            Some(place) => places.push((place.kind.into(), place.sequence, name)),
            None => inspection.foreign.push(name),
        }
    }
    inspection.contenders = contenders(session, &directory, places).await?;
    inspection.broken = audit::entries(session, &audit::of_lock(path)).await?;
    inspection.rebased = audit::entries(session, audit::OF_BASE).await?;
    Ok(inspection)
}

/// Reads the nodes of a queue.
async fn contenders(
    session: &Session,
    directory: &str,
    places: Vec<(ContenderKind, i64, String)>,
) -> Result<Vec<Contender>, InspectError> {
    let read = |name: &str| session.client.get_data(&format!("{directory}/{name}"));
    // All reads are on their way before the first is awaited.
    let reads: Vec<_> = places.iter().map(|(_, _, name)| read(name)).collect();
    let mut contenders = Vec::new();
    for (read, (kind, sequence, name)) in reads.into_iter().zip(places) {
        match read.await {
            Ok((data, stat)) => contenders.push(Contender {
                name,
                kind,
                sequence,
                czxid: stat.czxid,
                session: stat.ephemeral_owner,
                label: label::read(&data, label::MAX_BYTES),
                age: age(stat.ctime),
            }),
            // It has left meanwhile.
            Err(Error::NoNode) => {}
            Err(error) => return Err(InspectError::failed(&format!("{directory}/{name}"), error)),
        }
    }
    contenders.sort_by_key(|it| (it.sequence, it.czxid));
    Ok(contenders)
}

/// Deletes the contender that this transaction created, and writes down that it did.
pub(crate) async fn break_lock(
    session: &Arc<Session>,
    path: &LockPath,
    czxid: i64,
    reason: &str,
) -> Result<Contender, InspectError> {
    let contender = find(session, path, czxid).await?;
    let directory = session.settings.directory(path.as_str());
    let node = format!("{directory}/{}", contender.name);
    let entry = Entry::new(session, &audit::of_lock(path), &removed(&contender), reason).await?;
    let mut both = session.client.new_multi_writer();
    both.add_delete(&node, None)
        .and_then(|()| entry.add_to(&mut both))
        .map_err(|error| InspectError::failed(&node, error))?;
    match both.commit().await {
        Ok(_) => Ok(contender),
        Err(MultiWriteError::OperationFailed {
            index: 0,
            source: Error::NoNode,
        }) => Err(not_there(path, czxid)),
        Err(error) => Err(InspectError::failed(&node, Error::from(error))),
    }
}

/// Writes into the node of a contender what asks it for the lock.
pub(crate) async fn ask_to_release(
    session: &Arc<Session>,
    path: &LockPath,
    czxid: i64,
) -> Result<Contender, InspectError> {
    let contender = find(session, path, czxid).await?;
    let directory = session.settings.directory(path.as_str());
    let node = format!("{directory}/{}", contender.name);
    match session.client.set_data(&node, REVOKE, None).await {
        Ok(_) => Ok(contender),
        Err(Error::NoNode) => Err(not_there(path, czxid)),
        Err(error) => Err(InspectError::failed(&node, error)),
    }
}

async fn find(
    session: &Arc<Session>,
    path: &LockPath,
    czxid: i64,
) -> Result<Contender, InspectError> {
    let queue = inspect(session, path).await?.contenders;
    let found = queue.into_iter().find(|it| it.czxid == czxid);
    found.ok_or_else(|| not_there(path, czxid))
}

fn not_there(path: &LockPath, czxid: i64) -> InspectError {
    let path = path.clone();
    InspectError::NotThere { path, czxid }
}

fn removed(contender: &Contender) -> String {
    let Contender {
        name,
        czxid,
        session,
        ..
    } = contender;
    let label = contender.label.as_deref().unwrap_or_default();
    format!("removed {name:?} (czxid {czxid}, session {session:#x}, label {label:?})")
}

pub(crate) async fn children(
    session: &Session,
    directory: &str,
) -> Result<Vec<String>, InspectError> {
    match session.client.list_children(directory).await {
        Err(Error::NoNode) => Ok(Vec::new()),
        listed => listed.map_err(|error| InspectError::failed(directory, error)),
    }
}

fn age(created: i64) -> Duration {
    let created = Duration::from_millis(u64::try_from(created).unwrap_or_default());
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().saturating_sub(created)
}

impl From<Kind> for ContenderKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Lock => Self::Lock,
            Kind::Latch => Self::Latch,
            Kind::KazooLock => Self::KazooLock,
            Kind::KazooShared => Self::KazooReader,
            Kind::Read => Self::Reader,
            Kind::Write => Self::Writer,
        }
    }
}
