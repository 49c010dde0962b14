//! A section beside the bare requests that it cannot do without.

use std::thread;
use std::time::Duration;

use fenced::prelude::*;
use fenced::{LockPath, LockRequest, Release, section};
use fenced_tests::{Times, shared};
use tokio::sync::oneshot;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};

use crate::Failure;

const ROUNDS: usize = 1_000;
const FAR_ROUNDS: usize = 60;
const WARM_UP: usize = 200;
const FAR_WARM_UP: usize = 5;
const PATIENCE: Duration = Duration::from_mins(1);

/// A session as the locks have it, on a thread of its own.
struct Bare {
    client: Client,
    prefix: String,
}

const SEQUENTIAL: CreateOptions<'static> =
    CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());

impl Bare {
    async fn connect(address: &str) -> Result<Self, Failure> {
        let (sender, client) = oneshot::channel();
        let address = address.to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::spawn(move || {
            runtime.block_on(async {
                let _ = sender.send(Client::connect(&address).await);
                std::future::pending::<()>().await;
            });
        });
        let client = client.await??;
        let directory = shared::fresh_root();
        let lasting = CreateMode::Persistent.with_acls(Acls::anyone_all());
        client.create(&directory, b"", &lasting).await?;
        let prefix = format!("{directory}/_c_6ba7b810-9dad-11d1-80b4-00c04fd430c8-lock-");
        Ok(Self { client, prefix })
    }

    async fn create(&self) -> String {
        let created = self
            .client
            .create(&self.prefix, b"label/12345", &SEQUENTIAL);
        let (_, sequence) = created.await.expect("a create");
        format!("{}{sequence}", self.prefix)
    }

    async fn delete(&self, node: &str) {
        self.client.delete(node, None).await.expect("a delete");
    }
}

/// What each half of a section costs.
pub(crate) async fn near(address: &str) -> Result<(), Failure> {
    let (locks, bare) = (
        ZkLocks::connect(address).await?,
        Bare::connect(address).await?,
    );
    let path = LockPath::new(format!("{}/lock", shared::fresh_root()))?;
    let mut times = Times::default();
    for round in 0..WARM_UP + ROUNDS {
        if round == WARM_UP {
            times = Times::default();
        }
        halves(&mut times, &locks, &path, &bare).await;
    }
    times.compare("acquire", "a bare create", 1.0 / 1.15);
    times.compare("release", "a bare delete", 1.0 / 1.10);
    Ok(())
}

async fn halves(times: &mut Times, locks: &ZkLocks, path: &LockPath, bare: &Bare) {
    let mut node = String::new();
    let create = async { node = bare.create().await };
    times.take("a bare create", 1, create).await;
    times.take("a bare delete", 1, bare.delete(&node)).await;
    let mut lease = None;
    let request = LockRequest::new(path, PATIENCE);
    let acquire = async { lease = locks.acquire(request).await.ok() };
    times.take("acquire", 1, acquire).await;
    let lease = lease.expect("a lock that nobody else wants");
    times.take("release", 1, lease.release()).await;
}

/// How many round trips a section costs, one being that of a bare create.
pub(crate) async fn far(address: &str) -> Result<(), Failure> {
    let (locks, bare) = (
        ZkLocks::connect(address).await?,
        Bare::connect(address).await?,
    );
    let path = format!("{}/lock", shared::fresh_root());
    let mut times = Times::default();
    for round in 0..FAR_WARM_UP + FAR_ROUNDS {
        if round == FAR_WARM_UP {
            times = Times::default();
        }
        sections(&mut times, &locks, &path, &bare).await;
    }
    times.compare("section, two round trips", "a bare create", 1.0 / 2.2);
    times.compare(
        "detached section, one round trip",
        "a bare create",
        1.0 / 1.1,
    );
    Ok(())
}

async fn sections(times: &mut Times, locks: &ZkLocks, path: &str, bare: &Bare) {
    let mut node = String::new();
    let create = async { node = bare.create().await };
    times.take("a bare create", 1, create).await;
    bare.delete(&node).await;
    let whole = section(locks, path).run(async |_| ());
    times.take("section, two round trips", 1, whole).await;
    let detached = section(locks, path)
        .release(Release::Detach)
        .run(async |_| ());
    times
        .take("detached section, one round trip", 1, detached)
        .await;
    // So that the next section does not follow a delete that is under way.
    bare.delete(&bare.create().await).await;
}
