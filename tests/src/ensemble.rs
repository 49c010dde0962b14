//! Several ZooKeeper servers that are one service.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use crate::proxy::{Proxy, Way};
use crate::{ZooKeeper, ZooKeeperOptions, ports};

/// A vote that was lost is repeated this soon; by default that may take a minute.
const REPEAT_VOTES_WITHIN_MS: &str = "1000";

/// An ensemble whose servers reach each other through proxies. Its methods block.
#[derive(Debug)]
pub struct Ensemble {
    servers: Vec<ZooKeeper>,
    links: Vec<Link>,
}

/// What one server uses to reach another: for the quorum, and for elections.
#[derive(Debug)]
struct Link {
    from: usize,
    to: usize,
    quorum: Proxy,
    election: Proxy,
}

/// Where a server listens for the others.
#[derive(Debug, Clone, Copy)]
struct Inside {
    quorum: SocketAddr,
    election: SocketAddr,
}

impl Ensemble {
    /// Starts `size` servers with the usual options and waits until all serve.
    ///
    /// # Errors
    /// When ZooKeeper is not installed or a server does not start.
    pub fn start(size: usize) -> io::Result<Self> {
        Self::start_with(size, &ZooKeeper::options())
    }

    /// The same with other options.
    ///
    /// # Errors
    /// When ZooKeeper is not installed or a server does not start.
    pub fn start_with(size: usize, options: &ZooKeeperOptions) -> io::Result<Self> {
        let inside = (0..size)
            .map(|_| Inside::free())
            .collect::<io::Result<Vec<_>>>()?;
        let mut ensemble = Self {
            servers: Vec::new(),
            links: links(&inside)?,
        };
        for (index, own) in inside.iter().enumerate() {
            let options = ensemble.member(index, *own, options.clone());
            ensemble.servers.push(options.prepare()?);
        }
        ensemble
            .servers
            .iter_mut()
            .try_for_each(ZooKeeper::launch)?;
        ensemble
            .servers
            .iter_mut()
            .try_for_each(ZooKeeper::await_serving)?;
        Ok(ensemble)
    }

    /// All addresses, as a client's connection string.
    #[must_use]
    pub fn addresses(&self) -> String {
        self.servers
            .iter()
            .map(ZooKeeper::address)
            .collect::<Vec<_>>()
            .join(",")
    }

    /// One of the servers, from 0.
    #[must_use]
    pub fn server(&self, index: usize) -> &ZooKeeper {
        &self.servers[index]
    }

    /// One of the servers, to stop or restart it.
    pub fn server_mut(&mut self, index: usize) -> &mut ZooKeeper {
        &mut self.servers[index]
    }

    /// Which server leads, if one does right now.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        self.servers.iter().position(|server| {
            server
                .four_letter("srvr")
                .is_ok_and(|answer| answer.contains("Mode: leader"))
        })
    }

    /// Silences all that goes between this server and the others; its clients still reach it.
    pub fn cut_off(&self, index: usize) {
        for proxy in self.proxies_of(index) {
            proxy.silence(Way::ToServer);
            proxy.silence(Way::ToClient);
        }
    }

    /// Ends [`cut_off`](Self::cut_off).
    pub fn rejoin(&self, index: usize) {
        for proxy in self.proxies_of(index) {
            proxy.restore(Way::ToServer);
            proxy.restore(Way::ToClient);
        }
    }

    fn proxies_of(&self, index: usize) -> impl Iterator<Item = &Proxy> {
        let of_it = move |link: &&Link| link.from == index || link.to == index;
        self.links
            .iter()
            .filter(of_it)
            .flat_map(|link| [&link.quorum, &link.election])
    }

    /// The options of one member, with its own view of the ensemble.
    fn member(&self, index: usize, own: Inside, options: ZooKeeperOptions) -> ZooKeeperOptions {
        let others = self.links.iter().filter(|link| link.from == index);
        let options = others.fold(options, |options, link| {
            let there = format!("{}:{}", link.quorum.address(), link.election.port());
            options.setting(&name(link.to), &there)
        });
        let own = format!("{}:{}", own.quorum, own.election.port());
        options
            .setting("fastleader.maxNotificationInterval", REPEAT_VOTES_WITHIN_MS)
            .setting(&name(index), &own)
            .member(index + 1)
    }
}

impl Inside {
    fn free() -> io::Result<Self> {
        let address = || ports::free().map(|port| (Ipv4Addr::LOCALHOST, port).into());
        Ok(Self {
            quorum: address()?,
            election: address()?,
        })
    }
}

fn links(inside: &[Inside]) -> io::Result<Vec<Link>> {
    let mut links = Vec::new();
    for from in 0..inside.len() {
        for (to, target) in inside.iter().enumerate().filter(|(to, _)| *to != from) {
            let (quorum, election) = (Proxy::start(target.quorum)?, Proxy::start(target.election)?);
            links.push(Link {
                from,
                to,
                quorum,
                election,
            });
        }
    }
    hide(inside, &links);
    Ok(links)
}

/// A server tells its own address when it connects for an election, and a peer with a higher
/// number hangs up and calls back there: let it read that of the proxy in between.
fn hide(inside: &[Inside], links: &[Link]) {
    for link in links {
        let back = links
            .iter()
            .find(|back| back.from == link.to && back.to == link.from);
        if let Some(back) = back {
            let own = inside[link.from].election.to_string();
            link.election.rename(own, back.election.address());
        }
    }
}

fn name(index: usize) -> String {
    format!("server.{}", index + 1)
}
