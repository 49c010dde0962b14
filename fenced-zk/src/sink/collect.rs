use fenced_core::{FencingToken, SinkError};
use zookeeper_client::{CreateMode, Error};

use super::attempt::make;
use super::record::{self, folder, read};
use crate::failure::Failure;
use crate::session::Session;

/// The token below which requests were collected: zero at first.
pub(super) async fn floor(session: &Session) -> Result<(i64, Option<i32>), SinkError> {
    let node = folder(session, "floor");
    let Some((data, version)) = read(session, session.client.get_data(&node)).await? else {
        return Ok((0, None));
    };
    let text = std::str::from_utf8(&data).ok();
    let floor = text.and_then(|text| text.parse().ok()).unwrap_or(i64::MAX);
    Ok((floor, Some(version)))
}

/// Removes the requests of older tokens; says how many.
pub(super) async fn collect(session: &Session, below: FencingToken) -> Result<u64, SinkError> {
    session.connected().await;
    raise_floor(session, below.get()).await?;
    let requests = folder(session, "requests");
    let names = match session
        .answer(session.client.list_children(&requests))
        .await
    {
        Ok(names) => names,
        Err(Error::NoNode) => return Ok(0),
        Err(error) => return Err(refused(session, error)),
    };
    let mut removed = 0;
    for name in names {
        let node = format!("{requests}/{name}");
        let stored = read(session, session.client.get_data(&node)).await?;
        let token = stored.and_then(|(data, _)| record::token(&data));
        if token.is_some_and(|token| token < below.get()) {
            removed += u64::from(delete(session, &node).await?);
        }
    }
    Ok(removed)
}

async fn raise_floor(session: &Session, floor: i64) -> Result<(), SinkError> {
    let node = folder(session, "floor");
    let text = floor.to_string();
    loop {
        let (known, version) = self::floor(session).await?;
        if known >= floor {
            return Ok(());
        }
        let written = if version.is_some() {
            let set = session.client.set_data(&node, text.as_bytes(), version);
            session.answer(set).await.map(|_| ())
        } else {
            make(session, &folder(session, "requests")).await?;
            let lasting = session.settings.create(CreateMode::Persistent);
            let create = session.client.create(&node, text.as_bytes(), &lasting);
            session.answer(create).await.map(|_| ())
        };
        match written {
            Ok(()) => return Ok(()),
            Err(Error::BadVersion | Error::NodeExists) => {}
            Err(error) => return Err(refused(session, error)),
        }
    }
}

async fn delete(session: &Session, node: &str) -> Result<bool, SinkError> {
    match session.answer(session.client.delete(node, None)).await {
        Ok(()) => Ok(true),
        Err(Error::NoNode) => Ok(false),
        Err(error) => Err(refused(session, error)),
    }
}

fn refused(session: &Session, error: Error) -> SinkError {
    match session.judge(&error) {
        Failure::Refused => SinkError::backend(error),
        _ => SinkError::Retry(error.into()),
    }
}
