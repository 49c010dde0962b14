//! What operators did, written down below `<root>/fenced/audit`.

use std::time::{SystemTime, UNIX_EPOCH};

use fenced_core::LockPath;
use zookeeper_client::{CreateMode, Error, MultiWriter};

use crate::session::Session;
use crate::{InspectError, inspect, label};

/// The longest entry, in bytes.
const ENTRY_BYTES: usize = 2_048;
/// Entries are many over the years; the latest are of use.
const SHOWN: usize = 100;

/// The folder of what was done to the base of tokens. No lock's is called so.
pub(crate) const OF_BASE: &str = "base";

/// The folder of a lock: a single name, so that nobody ever takes a lock below.
pub(crate) fn of_lock(path: &LockPath) -> String {
    path.as_str().replace('%', "%25").replace('/', "%2F")
}

/// An entry to be written in the transaction that does what it tells.
pub(crate) struct Entry<'a> {
    session: &'a Session,
    prefix: String,
    text: String,
}

impl<'a> Entry<'a> {
    /// Makes the folder, and the entry that `what` was done.
    pub(crate) async fn new(
        session: &'a Session,
        folder: &str,
        what: &str,
        reason: &str,
    ) -> Result<Self, InspectError> {
        let folder = path(session, folder);
        let lasting = session.settings.create(CreateMode::Persistent);
        let made = session.client.mkdir(&folder, &lasting).await;
        made.map_err(|error| InspectError::failed(&folder, error))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.unwrap_or_default().as_secs();
        let owner = &session.settings.owner;
        let owner = label::bounded(owner, label::MAX_BYTES);
        let reason = label::bounded(reason, label::MAX_BYTES);
        let text = format!("at {seconds} s since 1970, {owner:?} {what}: {reason}");
        Ok(Self {
            session,
            prefix: format!("{folder}/"),
            text,
        })
    }

    pub(crate) fn add_to(&self, transaction: &mut MultiWriter) -> Result<(), Error> {
        let entries = CreateMode::PersistentSequential;
        let options = self.session.settings.create(entries);
        transaction.add_create(&self.prefix, self.text.as_bytes(), &options)
    }
}

/// The latest entries of a folder, the latest last.
pub(crate) async fn entries(session: &Session, folder: &str) -> Result<Vec<String>, InspectError> {
    let folder = path(session, folder);
    let mut names = inspect::children(session, &folder).await?;
    names.sort_unstable();
    let latest = names.split_off(names.len().saturating_sub(SHOWN));
    let nodes = latest.iter().map(|name| format!("{folder}/{name}"));
    let reads: Vec<_> = nodes
        .map(|node| (session.client.get_data(&node), node))
        .collect();
    let mut entries = Vec::new();
    for (read, node) in reads {
        match read.await {
            Ok((data, _)) => entries.extend(label::read(&data, ENTRY_BYTES)),
            Err(Error::NoNode) => {}
            Err(error) => return Err(InspectError::failed(&node, error)),
        }
    }
    Ok(entries)
}

fn path(session: &Session, folder: &str) -> String {
    format!("{}/fenced/audit/{folder}", session.settings.root)
}
