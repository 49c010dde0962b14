//! The one reader of the client's session state: what it says is a hint, verified before use.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use fenced_core::LossReason;
use tokio::time::{sleep, sleep_until};
use zookeeper_client::{Error, SessionState, StateWatcher};

use crate::events::{Events, SessionEvent};
use crate::failure::Failure;
use crate::nodelay;
use crate::session::Session;

/// Follows the connection until the session is over, and says why it is.
pub(crate) async fn pump(
    session: &Session,
    mut states: StateWatcher,
    events: &Events,
) -> LossReason {
    let mut state = states.state();
    let mut is_first = true;
    loop {
        match state {
            SessionState::SyncConnected if is_first => events.tell(SessionEvent::Connected),
            SessionState::SyncConnected => {
                // Maybe the state between two of these went by unseen.
                suspect(session, events);
                if session.settings.nodelay {
                    let ports = session.settings.address.ports();
                    session.spawn(nodelay::on_connections_to(ports));
                }
                tokio::select! {
                    outcome = verify(session) => if let Err(reason) = outcome {
                        return reason;
                    },
                    next = states.changed() => {
                        state = next;
                        continue;
                    }
                    () = given_up(session) => return LossReason::DeadlinePassed,
                }
                confirm(session, events);
            }
            SessionState::Disconnected | SessionState::ConnectedReadOnly => {
                suspect(session, events);
            }
            SessionState::Closed => return LossReason::Closed,
            SessionState::Expired | SessionState::AuthFailed => return LossReason::SessionExpired,
        }
        is_first = false;
        state = tokio::select! {
            next = states.changed() => next,
            () = given_up(session) => return LossReason::DeadlinePassed,
        };
    }
}

/// Resolves when a lost connection is not awaited any longer.
async fn given_up(session: &Session) {
    if session.link().connected {
        std::future::pending::<()>().await;
    }
    sleep_until(session.given_up_at().into()).await;
}

fn suspect(session: &Session, events: &Events) {
    if session.link().connected {
        session.set_connected(false);
        events.tell(SessionEvent::Suspect);
    }
    for held in session.held().into_values() {
        held.lease.suspect();
    }
}

fn confirm(session: &Session, events: &Events) {
    for held in session.held().into_values() {
        held.lease.confirm();
    }
    session.set_connected(true);
    events.tell(SessionEvent::Connected);
}

/// Asks whether the server still knows this session as the owner of its nodes.
async fn verify(session: &Session) -> Result<(), LossReason> {
    loop {
        let nodes = session.nodes();
        if nodes.is_empty() {
            return Ok(());
        }
        let owned = session.client.list_ephemerals("/");
        match session.answer(owned).await {
            Ok(owned) => return compare(session, nodes, owned.into_iter().collect()).await,
            Err(Error::Unimplemented) => return look_at_each(session, nodes, false).await,
            Err(error) if session.judge(&error) == Failure::Over => {
                return Err(LossReason::SessionExpired);
            }
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn compare(
    session: &Session,
    nodes: Vec<Arc<str>>,
    owned: HashSet<String>,
) -> Result<(), LossReason> {
    let missing: Vec<_> = nodes
        .into_iter()
        .filter(|node| !owned.contains(&**node))
        .collect();
    look_at_each(session, missing, true).await
}

/// Looks at the nodes themselves; `not_owned` if the server has not named them as the session's.
async fn look_at_each(
    session: &Session,
    nodes: Vec<Arc<str>>,
    not_owned: bool,
) -> Result<(), LossReason> {
    for node in nodes {
        let stat = loop {
            match session.answer(session.client.check_stat(&node)).await {
                Ok(stat) => break stat,
                Err(error) if session.judge(&error) == Failure::Over => {
                    return Err(LossReason::SessionExpired);
                }
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        };
        match stat {
            None => session.lose(&node, LossReason::NodeDeleted),
            Some(stat) if not_owned || stat.ephemeral_owner != session.id => {
                return Err(LossReason::SessionReplaced);
            }
            Some(_) => {}
        }
    }
    Ok(())
}
