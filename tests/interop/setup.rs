//! A path that a peer and we share.

use std::time::{Duration, Instant};

use fenced::zookeeper::ZkLocks;
use fenced::{Lease, LockError, LockPath, LockRequest, LockService};
use fenced_tests::{Peer, shared};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Meeting {
    pub(crate) locks: ZkLocks,
    pub(crate) path: LockPath,
}

/// What a peer said of its grant.
pub(crate) struct Grant {
    pub(crate) node: String,
    pub(crate) czxid: i64,
}

impl Meeting {
    pub(crate) async fn new() -> Self {
        let locks = ZkLocks::connect(&shared::zookeeper_address()).await;
        Self {
            locks: locks.expect("the server accepts sessions"),
            path: LockPath::new(format!("{}/lock", shared::fresh_root())).expect("a valid path"),
        }
    }

    pub(crate) async fn acquire(&self, patience: Duration) -> Result<Lease, LockError> {
        let request = LockRequest::new(&self.path, patience);
        self.locks.acquire(request).await
    }

    /// Waits until so many stand in the queue; their transactions, the holder's first.
    pub(crate) async fn queue_of(&self, length: usize) -> Vec<i64> {
        let started = Instant::now();
        loop {
            let queue = self.locks.inspect(&self.path).await.expect("a queue");
            if queue.contenders.len() == length {
                return queue.contenders.iter().map(|it| it.czxid).collect();
            }
            assert!(started.elapsed() < PATIENCE, "{queue:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How a peer that does not wait in vain asks for the lock.
    pub(crate) fn order(&self) -> String {
        format!("acquire {} {}", self.path, PATIENCE.as_millis())
    }

    /// A peer that stands behind us does not get the lock in time, and gets it once we are done.
    pub(crate) async fn keeps_out(&self, peer: &mut Peer) {
        let lease = self.acquire(PATIENCE).await.expect("a free lock");
        let impatient = format!("acquire {} 300", self.path);
        assert_eq!(peer.ask(&impatient).await, "timeout");
        let order = self.order();
        let freed = async {
            self.queue_of(2).await;
            let token = lease.token();
            lease.release().await.expect("a lock of ours");
            token
        };
        let (said, token) = tokio::join!(peer.ask(&order), freed);
        let grant = Grant::parse(&said);
        assert!(grant.czxid > token.get(), "{said} after {token}");
        assert_eq!(peer.ask("release").await, "released");
    }

    /// Behind a peer we get no lock in time, and one with a higher token once it is done.
    pub(crate) async fn is_kept_out(&self, peer: &mut Peer) {
        let grant = Grant::parse(&peer.ask(&self.order()).await);
        let error = self.acquire(Duration::from_millis(300)).await.unwrap_err();
        assert!(matches!(error, LockError::Timeout { .. }), "{error}");
        let freed = async {
            assert_eq!(self.queue_of(2).await[0], grant.czxid);
            assert_eq!(peer.ask("release").await, "released");
        };
        let (lease, ()) = tokio::join!(self.acquire(PATIENCE), freed);
        let lease = lease.expect("a free lock");
        assert!(lease.token().get() > grant.czxid);
        lease.release().await.expect("a lock of ours");
    }
}

impl Grant {
    pub(crate) fn parse(said: &str) -> Self {
        let words: Vec<_> = said.split(' ').collect();
        let ["acquired", node, czxid] = words[..] else {
            panic!("{said}");
        };
        Self {
            node: node.to_owned(),
            czxid: czxid.parse().expect("a number"),
        }
    }
}
