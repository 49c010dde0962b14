//! Opening a session, with one try after the other.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use zookeeper_client::{Client, Error};

use super::{Status, locked};
use crate::reach::{self, Trouble};
use crate::settings::Settings;
use crate::{ZkError, nodelay};

/// Opens a session before `deadline`, if there is one.
pub(super) async fn open(
    settings: &Settings,
    status: &Status,
    deadline: Option<Instant>,
) -> Result<Client, ZkError> {
    let began = Instant::now();
    let tries = try_until_open(settings, status, deadline.map(|it| it - began));
    let opened = match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, tries).await,
        None => Ok(tries.await),
    };
    opened.unwrap_or_else(|_| {
        Err(ZkError::Unreachable {
            servers: settings.address.servers.clone(),
            waited: began.elapsed(),
            cause: status.trouble().into(),
        })
    })
}

async fn try_until_open(
    settings: &Settings,
    status: &Status,
    budget: Option<Duration>,
) -> Result<Client, ZkError> {
    // The client's own limit is the session timeout; on some networks it then loops for ever.
    let longest = budget
        .unwrap_or(Duration::MAX)
        .min(settings.session_timeout);
    loop {
        let error = match timeout(longest * 3 / 4, settings.connect()).await {
            Ok(Ok(client)) => {
                *locked(&status.trouble) = None;
                if settings.nodelay {
                    nodelay::on_connections_to(settings.address.ports()).await;
                }
                return Ok(client);
            }
            Ok(Err(error)) => error,
            Err(_) => Error::Timeout,
        };
        tracing::debug!(servers = settings.address.servers, %error, "no session yet");
        if let Some(error) = told_at_once(settings, &error) {
            return Err(error);
        }
        look(settings, status, error).await;
        sleep(Duration::from_millis(100)).await;
    }
}

/// Finds out why there is no session.
async fn look(settings: &Settings, status: &Status, error: Error) {
    // All there is, should there be no time for more.
    *locked(&status.trouble) = Some(Trouble::of_client(error));
    let seen = reach::look(&settings.address.servers).await;
    *locked(&status.trouble) = Some(seen);
}

/// What another try would not mend.
fn told_at_once(settings: &Settings, error: &Error) -> Option<ZkError> {
    match error {
        Error::AuthFailed => Some(ZkError::Credentials {
            servers: settings.address.servers.clone(),
        }),
        Error::BadArguments(_) => Some(ZkError::Options(error.to_string())),
        _ => None,
    }
}
