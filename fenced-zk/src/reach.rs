//! Why there is no session: the client does not say, so its servers are looked at without it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::address;

/// What was seen of servers that gave no session.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Trouble {
    text: String,
    #[source]
    last: Option<Arc<io::Error>>,
}

impl Default for Trouble {
    fn default() -> Self {
        Self::said("no answer")
    }
}

impl Trouble {
    fn said(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { text, last: None }
    }

    /// There is no thread for a session.
    pub(crate) fn of_thread(error: io::Error) -> Self {
        let text = format!("no thread for the session: {error}");
        let last = Some(Arc::new(error));
        Self { text, last }
    }

    pub(crate) fn of_client(error: zookeeper_client::Error) -> Self {
        match error {
            zookeeper_client::Error::Timeout => Self::default(),
            error => Self::said(error.to_string()),
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(1);
/// As many as an ensemble has voting members, and some.
const LOOKED_AT: usize = 9;

/// Connects to each of the servers.
pub(crate) async fn look(servers: &str) -> Trouble {
    let mut looks = JoinSet::new();
    for (index, server) in servers.split(',').take(LOOKED_AT).enumerate() {
        let server = server.to_owned();
        looks.spawn(async move { (index, look_at(&server).await) });
    }
    let mut seen = looks.join_all().await;
    seen.sort_by_key(|(index, _)| *index);
    let seen: Vec<_> = seen.into_iter().map(|(_, trouble)| trouble).collect();
    let text = seen.iter().map(|it| it.text.as_str());
    Trouble {
        text: text.collect::<Vec<_>>().join("; "),
        last: seen.iter().rev().find_map(|it| it.last.clone()),
    }
}

async fn look_at(server: &str) -> Trouble {
    let (host, port) = address::host_and_port(server);
    let tell = |what: &str, error: io::Error| Trouble {
        text: format!("`{host}:{port}` {what}: {error}"),
        last: Some(Arc::new(error)),
    };
    let looking = async {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let resolved = lookup_host((bare, port)).await;
        let addresses: Vec<_> = match resolved {
            Ok(addresses) => addresses.collect(),
            Err(error) => return tell("cannot be resolved", error),
        };
        match TcpStream::connect(&addresses[..]).await {
            Ok(_) => Trouble::said(format!(
                "`{host}:{port}` accepts connections and gives no session: is it a ZooKeeper server of an ensemble with a quorum, and is TLS meant for this port"
            )),
            Err(error) => tell("refused the connection or has no route", error),
        }
    };
    let looked = timeout(PATIENCE, looking).await;
    looked.unwrap_or_else(|_| Trouble::said(format!("`{host}:{port}` does not answer")))
}
