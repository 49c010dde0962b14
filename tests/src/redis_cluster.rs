//! Three Redis servers that share their keys.

use std::io;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{Redis, installed, ports};

const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(20);

/// A throwaway cluster of three masters, ended and removed when dropped.
#[derive(Debug)]
pub struct RedisCluster {
    servers: Vec<Redis>,
}

impl RedisCluster {
    /// Starts the servers, spreads the slots over them, and waits until all of them know it.
    ///
    /// # Errors
    /// When Redis is not installed, or the cluster does not form.
    pub fn start() -> io::Result<Self> {
        let servers = (0..3).map(|_| member()).collect::<io::Result<Vec<_>>>()?;
        let cluster = Self { servers };
        let mut create = Command::new(installed::redis("redis-cli")?);
        create.args(["--cluster", "create"]);
        create.args(cluster.servers.iter().map(Redis::address));
        let output = create.arg("--cluster-yes").output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout);
            return Err(io::Error::other(format!(
                "no cluster ({}): {said}",
                output.status
            )));
        }
        cluster.wait_until_formed()?;
        Ok(cluster)
    }

    /// The URLs of its servers.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(Redis::url).collect()
    }

    /// Its servers.
    #[must_use]
    pub fn servers(&self) -> &[Redis] {
        &self.servers
    }

    fn wait_until_formed(&self) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !self.servers.iter().all(is_formed) {
            if Instant::now() > deadline {
                return Err(io::Error::other("the Redis cluster does not form"));
            }
            sleep(BETWEEN_QUESTIONS);
        }
        Ok(())
    }
}

fn member() -> io::Result<Redis> {
    // The usual port of the bus is 10,000 above the clients', where outgoing connections are.
    let bus = ports::free()?.to_string();
    let options = Redis::options().setting("cluster-enabled", "yes");
    options.setting("cluster-port", &bus).start()
}

fn is_formed(server: &Redis) -> bool {
    let info = server.ask("CLUSTER INFO").unwrap_or_default();
    info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
}
