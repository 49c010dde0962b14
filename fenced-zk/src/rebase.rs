//! How an operator makes tokens newer than those of an ensemble that lost its data.

use std::sync::Arc;

use fenced_core::FencingToken;
use zookeeper_client::{CreateMode, Error, MultiWriteError};

use crate::InspectError;
use crate::audit::{self, Entry};
use crate::base::Base;
use crate::session::Session;

/// Raises the base to `above`, if it is lower, and writes down that it did.
pub(crate) async fn rebase(
    session: &Arc<Session>,
    above: FencingToken,
    reason: &str,
) -> Result<i64, InspectError> {
    session.connected().await;
    let node = session.settings.base_node();
    let base = above.get();
    if base > Base::MAX {
        let why = format!("{base} leaves no room for the ids of transactions: is it a token");
        return Err(InspectError::failed(&node, why));
    }
    loop {
        let known = read(session, &node).await?;
        if let Some((known, _)) = known.filter(|(known, _)| *known >= base) {
            return Ok(known);
        }
        let before = known.map_or(0, |(known, _)| known);
        let what = format!("raised the base of tokens from {before} to {base}");
        let entry = Entry::new(session, audit::OF_BASE, &what, reason).await?;
        let version = known.map(|(_, version)| version);
        match write(session, &node, base, version, &entry).await {
            Ok(()) => return Ok(base),
            // Another operator was faster.
            Err(Error::BadVersion | Error::NodeExists | Error::NoNode) => {}
            Err(error) => return Err(InspectError::failed(&node, error)),
        }
    }
}

/// The base and the version of its node, if there is one.
async fn read(session: &Session, node: &str) -> Result<Option<(i64, i32)>, InspectError> {
    match session.client.get_data(node).await {
        Ok((data, stat)) => match Base::parse(node, &data) {
            Base::Is(base) => Ok(Some((base, stat.version))),
            // What is there is of no use to anybody.
            _ => Ok(Some((-1, stat.version))),
        },
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(InspectError::failed(node, error)),
    }
}

/// Writes the base over the one of that version.
async fn write(
    session: &Session,
    node: &str,
    base: i64,
    version: Option<i32>,
    entry: &Entry<'_>,
) -> Result<(), Error> {
    let data = base.to_string();
    let lasting = session.settings.create(CreateMode::Persistent);
    let mut both = session.client.new_multi_writer();
    match version {
        Some(_) => both.add_set_data(node, data.as_bytes(), version)?,
        None => both.add_create(node, data.as_bytes(), &lasting)?,
    }
    entry.add_to(&mut both)?;
    match both.commit().await {
        Ok(_) => Ok(()),
        Err(MultiWriteError::OperationFailed { source, .. }) => Err(source),
        Err(error) => Err(error.into()),
    }
}
