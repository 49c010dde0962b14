//! What is added to the id of a node's transaction to make a token: zero, until an operator
//! raises it because the ensemble has lost its data and begins to count anew.

use std::sync::Arc;

use fenced_core::FencingToken;
use zookeeper_client::{Error, EventType, OneshotWatcher};

use crate::refusal::Refusal;
use crate::session::Session;

#[derive(Clone, Debug, Default)]
pub(crate) enum Base {
    #[default]
    Unread,
    Is(i64),
    /// The node says nothing of use, and no token is safe.
    Unusable(String),
}

impl Base {
    /// The largest one. Transaction ids fit into the other half.
    pub(crate) const MAX: i64 = i64::MAX / 2;

    pub(crate) fn parse(node: &str, data: &[u8]) -> Self {
        let text = std::str::from_utf8(data).ok();
        let number = text.and_then(|text| text.parse().ok());
        match number.filter(|base| (0..=Self::MAX).contains(base)) {
            Some(base) => Self::Is(base),
            None => Self::Unusable(format!(
                "`{node}` holds no number that tokens can be based on: write a decimal one into it, above every token that a resource has seen"
            )),
        }
    }
}

/// Reads the base whenever it changes. Sent before any create, and its change told before any
/// answer that came after it, so that no token is made of the old one.
pub(crate) async fn follow(session: Arc<Session>) {
    let node = session.settings.base_node();
    loop {
        session.connected().await;
        match read(&session, &node).await {
            Ok((base, watcher)) => {
                session.base.send_replace(base);
                if watcher.changed().await.event_type == EventType::Session {
                    return;
                }
                session.base.send_replace(Base::Unread);
            }
            Err(error) => {
                session.judge(&error);
                session.settled().await;
            }
        }
    }
}

async fn read(session: &Session, node: &str) -> Result<(Base, OneshotWatcher), Error> {
    let watching = session.client.check_and_watch_stat(node);
    let (stat, watcher) = session.answer(watching).await?;
    if stat.is_none() {
        return Ok((Base::Is(0), watcher));
    }
    let base = match session.answer(session.client.get_data(node)).await {
        Ok((data, _)) => Base::parse(node, &data),
        // The watch has fired.
        Err(Error::NoNode) => Base::Unread,
        Err(Error::NoAuth) => Base::Unusable(format!("not authorized to read `{node}`")),
        Err(error) => return Err(error),
    };
    Ok((base, watcher))
}

impl Session {
    /// The token of the node that this transaction created.
    pub(crate) async fn token(&self, czxid: i64) -> Result<FencingToken, Refusal> {
        let mut base = self.base.subscribe();
        let known = base.wait_for(|base| !matches!(base, Base::Unread)).await;
        match known.as_deref() {
            Ok(Base::Is(base)) if czxid > 0 => {
                let token = base.checked_add(czxid).map(FencingToken::try_from);
                token.and_then(Result::ok).ok_or(Refusal::Token(czxid))
            }
            Ok(Base::Unusable(why)) => Err(Refusal::Base(why.clone())),
            _ => Err(Refusal::Token(czxid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_base_makes_no_token() {
        assert!(matches!(Base::parse("/b", b"0"), Base::Is(0)));
        assert!(matches!(
            Base::parse("/b", b"4611686018427387903"),
            Base::Is(Base::MAX)
        ));
        for bad in [
            &b""[..],
            b"-1",
            b"1e3",
            b"\xff",
            b"4611686018427387904",
            b" 1",
        ] {
            assert!(
                matches!(Base::parse("/b", bad), Base::Unusable(_)),
                "{bad:?}"
            );
        }
    }
}
