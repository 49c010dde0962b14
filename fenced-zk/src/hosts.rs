use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::ZkError;
use crate::host::{Host, Shared, Status};
use crate::lines::LineKey;
use crate::reach::Trouble;

/// The sessions of one lock service: more than one only where the watches of one would be too
/// many.
pub(crate) struct Hosts {
    shared: Arc<Shared>,
    hosts: Mutex<Vec<Host>>,
}

impl Hosts {
    /// Starts the first, and waits for its session.
    pub(crate) async fn open(shared: Arc<Shared>) -> Result<Self, ZkError> {
        let (opened, open) = oneshot::channel();
        let unreachable = |cause: Trouble| ZkError::Unreachable {
            servers: shared.settings.address.servers.clone(),
            waited: Duration::ZERO,
            cause: cause.into(),
        };
        let host = Host::start(0, &shared, Some(opened));
        let host = host.map_err(|error| unreachable(Trouble::of_thread(error)))?;
        let opened = open.await;
        opened.unwrap_or_else(|_| Err(unreachable(Trouble::default())))?;
        Ok(Self {
            shared,
            hosts: Mutex::new(vec![host]),
        })
    }

    fn all(&self) -> MutexGuard<'_, Vec<Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a line served by the host that was chosen for it.
    pub(crate) fn serve(&self, host: usize, line: LineKey) -> io::Result<()> {
        let mut hosts = self.all();
        while hosts.len() <= host {
            let index = hosts.len();
            hosts.push(Host::start(index, &self.shared, None)?);
        }
        hosts[host].serve(line);
        Ok(())
    }

    pub(crate) fn status(&self, host: usize) -> Option<Arc<Status>> {
        self.all().get(host).map(Host::status)
    }

    /// Ends all sessions; says whether the server has confirmed each end.
    pub(crate) async fn close(&self) -> bool {
        self.shared.closing.send_replace(true);
        let farewells: Vec<_> = self.all().iter().map(Host::farewell).collect();
        let mut is_confirmed = true;
        for mut farewell in farewells {
            // A thread that says nothing has left nothing.
            if let Ok(said) = farewell.wait_for(Option::is_some).await {
                is_confirmed &= !matches!(*said, Some(Err(_)));
            }
        }
        is_confirmed
    }
}
