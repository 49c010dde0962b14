//! A root of its own for each test, and an administrator who looks at it.

use std::time::{Duration, Instant};

use fenced::zookeeper::{ZkBuilder, ZkLocks};
use fenced::{Lease, LockPath, LockRequest, LockService};
use fenced_tests::{ZooKeeper, shared};
use zookeeper_client::{Client, Error};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A part of a server that nobody else uses.
pub(crate) struct Ground {
    pub(crate) server: String,
    pub(crate) root: String,
    pub(crate) admin: Client,
}

impl Ground {
    /// On the server that the whole run shares.
    pub(crate) async fn shared() -> Self {
        Self::on(shared::zookeeper_address()).await
    }

    pub(crate) async fn on(server: String) -> Self {
        let connector = Client::connector().with_session_timeout(PATIENCE);
        let admin = connector.connect(&server).await;
        Self {
            admin: admin.expect("the server accepts sessions"),
            root: shared::fresh_root(),
            server,
        }
    }

    pub(crate) fn builder(&self) -> ZkBuilder {
        ZkLocks::builder().root(&self.root)
    }

    /// A lock service as another process would have it.
    pub(crate) async fn locks(&self) -> ZkLocks {
        self.locks_at(&self.server).await
    }

    pub(crate) async fn locks_at(&self, address: &str) -> ZkLocks {
        let locks = self.builder().connect(address).await;
        locks.expect("the server accepts sessions")
    }

    /// The node that a lock's contenders are children of.
    pub(crate) fn directory(&self, path: &LockPath) -> String {
        format!("{}{path}", self.root)
    }

    /// The names in a lock's directory, in the order of their sequence numbers.
    pub(crate) async fn queue(&self, path: &LockPath) -> Vec<String> {
        let directory = self.directory(path);
        self.admin.sync("/").await.expect("a sync");
        let mut names = match self.admin.list_children(&directory).await {
            Ok(names) => names,
            Err(Error::NoNode) => Vec::new(),
            Err(error) => panic!("cannot list {directory}: {error}"),
        };
        names.sort_by_key(|name| name[name.len().saturating_sub(10)..].to_owned());
        names
    }

    /// Waits until so many stand in a lock's directory.
    pub(crate) async fn queue_of(&self, path: &LockPath, length: usize) -> Vec<String> {
        eventually(&format!("{length} contenders of {path}"), async || {
            let queue = self.queue(path).await;
            (queue.len() == length).then_some(queue)
        })
        .await
    }

    /// The session of whoever is first in a lock's queue.
    pub(crate) async fn owner(&self, path: &LockPath) -> i64 {
        let queue = self.queue(path).await;
        let node = format!("{}/{}", self.directory(path), queue[0]);
        let stat = self.admin.check_stat(&node).await.expect("a stat");
        stat.expect("the node is there").ephemeral_owner
    }

    /// Deletes a contender, as an administrator would.
    pub(crate) async fn delete(&self, path: &LockPath, name: &str) {
        let node = format!("{}/{name}", self.directory(path));
        self.admin.delete(&node, None).await.expect("a delete");
    }
}

/// How many watches the server keeps at the nodes of a lock.
pub(crate) fn watches(server: &ZooKeeper, path: &LockPath) -> usize {
    let by_path = server.four_letter("wchp").expect("the server answers");
    let mut is_ours = false;
    let mut count = 0;
    for line in by_path.lines() {
        if line.starts_with('/') {
            is_ours = line.contains(path.as_str());
        } else {
            count += usize::from(is_ours && line.trim().starts_with("0x"));
        }
    }
    count
}

pub(crate) fn path(name: &str) -> LockPath {
    LockPath::new(format!("/locks/{name}")).expect("a valid path")
}

pub(crate) async fn acquire(locks: &ZkLocks, path: &LockPath) -> Lease {
    let lease = locks.acquire(LockRequest::new(path, PATIENCE)).await;
    lease.unwrap_or_else(|error| panic!("no grant: {error}"))
}

/// Asks until there is an answer.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for what must come.
pub(crate) async fn soon<T>(what: &str, coming: impl Future<Output = T>) -> T {
    let came = tokio::time::timeout(PATIENCE, coming).await;
    came.unwrap_or_else(|_| panic!("never: {what}"))
}
