//! How a ZooKeeper server differs from the usual one.

use std::io;
use std::time::Duration;

use super::ZooKeeper;
use crate::{Certificate, folder, ports};

/// How a server is to be started.
#[derive(Debug, Clone)]
#[must_use]
pub struct ZooKeeperOptions {
    pub(super) tick: Duration,
    pub(super) settings: Vec<(String, String)>,
    pub(super) properties: Vec<(String, String)>,
    pub(super) member: Option<usize>,
    pub(super) secure_port: Option<u16>,
}

impl Default for ZooKeeperOptions {
    fn default() -> Self {
        Self {
            tick: Duration::from_millis(200),
            settings: Vec::new(),
            properties: Vec::new(),
            member: None,
            secure_port: None,
        }
        .setting("admin.enableServer", "false")
        .setting("4lw.commands.whitelist", "*")
        .setting("extendedTypesEnabled", "true")
        .setting("maxClientCnxns", "0")
        .setting("maxSessionTimeout", "60000")
        .setting("initLimit", "20")
        .setting("syncLimit", "10")
        .fsync(false)
    }
}

impl ZooKeeperOptions {
    /// The server's tick: sessions expire at multiples of it, and live at least for two.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// Whether a transaction is on the disk before it is answered (not, unless asked for).
    pub fn fsync(self, fsync: bool) -> Self {
        self.setting("forceSync", if fsync { "yes" } else { "no" })
    }

    /// A line of the server's configuration; the last one of a name counts.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A system property of the server's JVM.
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.properties.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Serves TLS with this certificate too, at [`ZooKeeper::secure_address`].
    ///
    /// # Errors
    /// When no port is free.
    pub fn secure(mut self, certificate: &Certificate) -> io::Result<Self> {
        let port = ports::free()?;
        self.secure_port = Some(port);
        let store = certificate.store().display().to_string();
        Ok(self
            .setting("secureClientPort", &port.to_string())
            .setting("secureClientPortAddress", "127.0.0.1")
            .setting("ssl.clientAuth", "none")
            .setting("ssl.keyStore.location", &store)
            .setting("ssl.keyStore.password", Certificate::PASSWORD)
            .property(
                "zookeeper.serverCnxnFactory",
                "org.apache.zookeeper.server.NettyServerCnxnFactory",
            ))
    }

    /// The server's number in its ensemble.
    pub(crate) fn member(mut self, number: usize) -> Self {
        self.member = Some(number);
        self
    }

    /// Starts the server and waits until it serves.
    ///
    /// # Errors
    /// When ZooKeeper is not installed or does not start.
    pub fn start(self) -> io::Result<ZooKeeper> {
        let mut server = self.prepare()?;
        server.restart()?;
        Ok(server)
    }

    /// The server with its port and folder, not yet started.
    pub(crate) fn prepare(self) -> io::Result<ZooKeeper> {
        let port = ports::free()?;
        let folder = folder::for_server("zookeeper-")?;
        Ok(ZooKeeper {
            process: None,
            options: self,
            port,
            folder,
        })
    }
}
