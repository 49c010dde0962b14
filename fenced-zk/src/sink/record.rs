//! Requests that were applied, with their answers, and the places of what the sink keeps.

use std::fmt::Write as _;

use fenced_core::{Answer, Fate, Fence, FencingToken, Request, SinkError};
use zookeeper_client::{Error, Stat};

use super::collect::floor;
use super::standing::Standing;
use crate::failure::Failure;
use crate::session::Session;

/// Where the sink keeps its own.
pub(super) fn folder(session: &Session, kind: &str) -> String {
    format!("{}/fenced/sink/{kind}", session.settings.root)
}

pub(super) fn fence_node(session: &Session, resource: &str) -> String {
    format!("{}/{}", folder(session, "fences"), segment(resource))
}

pub(super) fn request_node(session: &Session, id: &str) -> String {
    format!("{}/{}", folder(session, "requests"), segment(id))
}

/// One name for each text: what is not plain is written as its bytes.
fn segment(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => write!(name, "%{byte:02x}").expect("a string takes all"),
        }
    }
    name
}

/// The token, the digest and the answer, a line each.
pub(super) fn text(token: i64, digest: &[u8; 32], answer: &Answer) -> String {
    format!("{token}\n{}\n{}", hex(digest), answer.as_json())
}

fn hex(digest: &[u8; 32]) -> String {
    digest
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a string takes all");
            hex
        })
}

/// Whose request it was.
pub(super) fn token(data: &[u8]) -> Option<i64> {
    std::str::from_utf8(data).ok()?.lines().next()?.parse().ok()
}

/// The stored answer, if the request is the one that it was given to.
pub(super) fn answer(request: &Request, data: &[u8]) -> Result<Answer, SinkError> {
    let text = std::str::from_utf8(data).unwrap_or_default();
    let mut lines = text.splitn(3, '\n').skip(1);
    let (digest, answer) = (lines.next(), lines.next());
    match answer {
        Some(answer) if digest == Some(&hex(request.digest()?)) => Ok(Answer::from_json(answer)),
        _ => Err(request.mismatch()),
    }
}

/// What a node holds, if it is there.
pub(super) async fn read(
    session: &Session,
    reading: impl Future<Output = Result<(Vec<u8>, Stat), Error>>,
) -> Result<Option<(Vec<u8>, i32)>, SinkError> {
    match session.answer(reading).await {
        Ok((data, stat)) => Ok(Some((data, stat.version))),
        Err(Error::NoNode) => Ok(None),
        Err(error) if session.judge(&error) == Failure::Refused => Err(SinkError::backend(error)),
        Err(error) => Err(SinkError::Retry(error.into())),
    }
}

/// The fence is read first: a request that is not there although a newer holder had claimed by
/// then will never be.
pub(super) async fn fate(session: &Session, request: &Request) -> Result<Fate<Answer>, SinkError> {
    session.connected().await;
    let newest = match request.fence() {
        Some(sent) => newest_against(session, sent).await?,
        None => None,
    };
    let id = request_node(session, request.id());
    if let Some((data, _)) = read(session, session.client.get_data(&id)).await? {
        return answer(request, &data).map(Fate::Applied);
    }
    let floor = floor(session).await?.0;
    let has_passed = |sent: &Fence| newest > Some(sent.token) && sent.token.get() >= floor;
    Ok(match request.fence() {
        Some(sent) if has_passed(sent) => Fate::Absent,
        _ => Fate::Unknown,
    })
}

async fn newest_against(
    session: &Session,
    sent: &Fence,
) -> Result<Option<FencingToken>, SinkError> {
    let node = fence_node(session, &sent.resource);
    let standing = match read(session, session.client.get_data(&node)).await? {
        Some((data, _)) => Standing::parse(&node, &data)?,
        None => Standing::default(),
    };
    Ok(standing.against(sent.mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_texts_have_one_name() {
        assert_eq!(segment("/locks/a.b"), "%2flocks%2fa%2eb");
        assert_eq!(segment("%2f"), "%252f");
        assert_eq!(segment(".."), "%2e%2e");
        assert_eq!(segment("\u{1f980}"), "%f0%9f%a6%80");
    }
}
