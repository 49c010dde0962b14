//! The proxy's thread, which accepts connections or refuses them.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::watch;

use super::connection::serve;
use super::rules::Rules;
use super::traffic::Traffic;
use super::traps::Traps;

/// What the proxy's thread shares with its owner.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) upstream: SocketAddr,
    pub(super) framed: bool,
    /// What clients call themselves in their first words, and what the server is to read.
    pub(super) renamed: OnceLock<(String, String)>,
    pub(super) rules: watch::Sender<Rules>,
    pub(super) traffic: watch::Sender<Traffic>,
    pub(super) traps: Traps,
}

impl Network {
    pub(super) fn new(upstream: SocketAddr, framed: bool) -> Self {
        let (rules, traffic) = (watch::Sender::default(), watch::Sender::default());
        Self {
            upstream,
            framed,
            renamed: OnceLock::new(),
            rules,
            traffic,
            traps: Traps::default(),
        }
    }
}

/// Listens at `address` from before it returns until the rules say `closed`.
pub(super) fn spawn(address: SocketAddr, network: Arc<Network>) -> io::Result<JoinHandle<()>> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = listen(address, &network)?;
    thread::Builder::new()
        .name(format!("proxy {address}"))
        .spawn(move || runtime.block_on(run(listener, address, network)))
}

fn listen(address: SocketAddr, network: &Network) -> io::Result<StdListener> {
    let listener = StdListener::bind(address)?;
    listener.set_nonblocking(true)?;
    network
        .traffic
        .send_modify(|traffic| traffic.listening = true);
    Ok(listener)
}

/// Tells those who wait, also when the thread panics.
struct Ended(Arc<Network>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.traffic.send_modify(|traffic| traffic.ended = true);
    }
}

async fn run(mut listener: StdListener, address: SocketAddr, network: Arc<Network>) {
    let mut rules = network.rules.subscribe();
    let _ended = Ended(Arc::clone(&network));
    loop {
        tokio::select! {
            () = accept_all(listener, &network) => {}
            _ = rules.wait_for(|rules| rules.refusing || rules.closed) => {}
        }
        network
            .traffic
            .send_modify(|traffic| traffic.listening = false);
        let closed = rules
            .wait_for(|rules| !rules.refusing || rules.closed)
            .await;
        if closed.is_ok_and(|rules| rules.closed) {
            return;
        }
        listener = listen(address, &network).expect("the port was ours until now");
    }
}

async fn accept_all(listener: StdListener, network: &Arc<Network>) {
    let listener = TcpListener::from_std(listener).expect("the runtime has an I/O driver");
    loop {
        let (client, _) = listener
            .accept()
            .await
            .expect("a listener on loopback accepts");
        let mut id = 0;
        network.traffic.send_modify(|traffic| {
            traffic.accepted += 1;
            id = traffic.accepted;
            traffic.open.insert(id);
        });
        tokio::spawn(serve(id, client, Arc::clone(network)));
    }
}
