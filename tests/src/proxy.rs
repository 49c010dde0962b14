//! The network between a client and a server, with its faults.

mod connection;
mod frames;
mod lane;
mod listener;
mod operation;
mod rules;
mod traffic;
mod traps;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use crate::ports;
use listener::Network;
use rules::Rules;

pub use operation::Operation;
pub use rules::Way;
pub use traffic::{Request, Traffic};
pub use traps::{Fault, Sprung};

/// A proxy on a thread of its own, which a test that blocks its runtime does not stop.
///
/// What an `async` method asks for is done when it returns; the others hold for every byte
/// that arrives from then on.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network: Arc<Network>,
    traffic: watch::Receiver<Traffic>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy in front of any server: it carries bytes and knows nothing of requests.
    ///
    /// # Errors
    /// When the address cannot be resolved, or no port is free.
    pub fn start(upstream: impl ToSocketAddrs) -> io::Result<Self> {
        Self::new(upstream, false)
    }

    /// A proxy in front of a ZooKeeper server, which also sees requests and replies.
    ///
    /// # Errors
    /// When the address cannot be resolved, or no port is free.
    pub fn zookeeper(upstream: impl ToSocketAddrs) -> io::Result<Self> {
        Self::new(upstream, true)
    }

    fn new(upstream: impl ToSocketAddrs, framed: bool) -> io::Result<Self> {
        let upstream = upstream
            .to_socket_addrs()?
            .next()
            .ok_or(io::ErrorKind::AddrNotAvailable)?;
        let address = (Ipv4Addr::LOCALHOST, ports::free()?).into();
        let network = Arc::new(Network::new(upstream, framed));
        let traffic = network.traffic.subscribe();
        let thread = listener::spawn(address, Arc::clone(&network))?;
        Ok(Self {
            address,
            network,
            traffic,
            thread: Some(thread),
        })
    }

    /// `host:port` for the client.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Replaces `from`, in the first bytes of each client, by `to`, which is as long.
    pub(crate) fn rename(&self, from: String, to: String) {
        debug_assert_eq!(from.len(), to.len(), "{from} {to}");
        // Set once, by the one who made this proxy.
        let _ = self.network.renamed.set((from, to));
    }

    /// Closes every open connection; new ones are welcome.
    pub async fn cut(&self) {
        let newest = self.traffic.borrow().accepted;
        self.change(|rules| rules.cut_up_to = newest);
        self.wait_for(|traffic| traffic.open.iter().all(|&id| id > newest))
            .await;
    }

    /// Refuses new connections; the open ones stay.
    pub async fn refuse(&self) {
        self.change(|rules| rules.refusing = true);
        self.wait_for(|traffic| !traffic.listening).await;
    }

    /// Ends [`refuse`](Self::refuse).
    pub async fn accept(&self) {
        self.change(|rules| rules.refusing = false);
        self.wait_for(|traffic| traffic.listening).await;
    }

    /// Holds back all that goes this way, the news that a connection was closed included.
    pub fn silence(&self, way: Way) {
        self.change(|rules| rules.lane_mut(way).silent = true);
    }

    /// Delivers what [`silence`](Self::silence) held back, and ends it.
    pub fn restore(&self, way: Way) {
        self.change(|rules| rules.lane_mut(way).silent = false);
    }

    /// Delivers what goes this way so much later.
    pub fn delay(&self, way: Way, delay: Duration) {
        self.change(|rules| rules.lane_mut(way).delay = delay);
    }

    /// Drops the reply to the next request of this kind, and nothing else.
    #[must_use = "what it returns tells when that has happened"]
    pub fn drop_reply(&self, operation: Operation) -> Sprung {
        self.once(Fault::DropReply, move |request| {
            request.operation == operation
        })
    }

    /// Lets a fault befall the next request that matches.
    #[must_use = "what it returns tells when that has happened"]
    pub fn once(
        &self,
        fault: Fault,
        matching: impl Fn(&Request) -> bool + Send + 'static,
    ) -> Sprung {
        self.network.traps.set(fault, Box::new(matching))
    }

    /// How many requests of this kind went to the server.
    #[must_use]
    pub fn count(&self, operation: Operation) -> usize {
        self.traffic.borrow().count(operation)
    }

    /// All that has passed so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.traffic.borrow().clone()
    }

    /// Starts the list of requests anew.
    pub fn forget_requests(&self) {
        self.network
            .traffic
            .send_modify(|traffic| traffic.requests.clear());
    }

    /// Waits until the traffic is as wanted.
    ///
    /// # Panics
    /// When the proxy's thread has panicked.
    pub async fn wait_for(&self, mut wanted: impl FnMut(&Traffic) -> bool) {
        let mut traffic = self.traffic.clone();
        let seen = traffic
            .wait_for(|traffic| traffic.ended || wanted(traffic))
            .await;
        assert!(
            seen.is_ok_and(|traffic| !traffic.ended),
            "the proxy's thread has panicked"
        );
    }

    fn change(&self, change: impl FnOnce(&mut Rules)) {
        self.network.rules.send_modify(change);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.change(|rules| rules.closed = true);
        // Its panic was printed when it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
