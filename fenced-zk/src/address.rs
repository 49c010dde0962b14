//! Connect strings: `host1:2181,host2:2181/chroot`.

use std::collections::HashSet;

use fenced_core::LockPath;

use crate::ZkError;

/// The servers of an ensemble, and the folder all paths are below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) servers: String,
    /// Empty, or an absolute path.
    pub(crate) chroot: String,
}

impl Address {
    /// The ports of the servers.
    pub(crate) fn ports(&self) -> HashSet<u16> {
        let ports = self
            .servers
            .split(',')
            .map(|server| host_and_port(server).1);
        ports.collect()
    }

    /// The same for all addresses of the same servers.
    pub(crate) fn ensemble(&self) -> String {
        let servers = self.servers.split(',').map(|server| {
            let (host, port) = host_and_port(server);
            format!("{}:{port}", host.to_ascii_lowercase())
        });
        let mut servers: Vec<_> = servers.collect();
        servers.sort_unstable();
        servers.dedup();
        servers.join(",")
    }

    pub(crate) fn parse(text: &str) -> Result<Self, ZkError> {
        let text = text.trim();
        let unusable = |why: &str| Err(ZkError::Options(format!("the address {text:?} {why}")));
        let hosts_start = text.rfind("://").map_or(0, |at| at + 3);
        let slash = text[hosts_start..].find('/').map(|at| hosts_start + at);
        let (servers, chroot) = text.split_at(slash.unwrap_or(text.len()));
        if servers.is_empty() {
            return unusable("names no server: write `host:port`, several with commas between");
        }
        for server in servers.split(',') {
            if let Err(why) = check(server) {
                return unusable(&why);
            }
        }
        Ok(Self {
            servers: servers.to_owned(),
            chroot: folder(chroot)?,
        })
    }

    /// Whether a server is named that wants TLS.
    pub(crate) fn asks_for_tls(&self) -> bool {
        self.servers.contains(TLS)
    }
}

const PLAIN: &str = "tcp://";
const TLS: &str = "tcp+tls://";
const DEFAULT_PORT: &str = "2181";

/// A path that others are appended to: the lone `/` is none.
pub(crate) fn folder(path: &str) -> Result<String, ZkError> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(String::new());
    }
    match LockPath::new(path) {
        Ok(path) => Ok(path.as_str().to_owned()),
        Err(error) => Err(ZkError::Options(format!("as a root, {error}"))),
    }
}

/// What is wrong with a server's name, and what to do about it.
fn check(server: &str) -> Result<(), String> {
    if server.trim().is_empty() {
        return Err("has an empty entry: remove the comma, or name the server".to_owned());
    }
    let (host, port) = split(server);
    if host.is_empty() {
        return Err(format!(
            "has {server:?}, which names no host: write `host:port`"
        ));
    }
    let is_host = |c: char| c.is_alphanumeric() || "-._[]:%".contains(c);
    if let Some(c) = host.chars().find(|c| !is_host(*c)) {
        return Err(format!(
            "has {server:?}, where {c:?} cannot be part of a host's name"
        ));
    }
    match port {
        "" => Err(format!(
            "has {server:?}, which ends where its port should be: write `{host}:2181`"
        )),
        _ if port.parse().is_ok_and(|port: u16| port != 0) => Ok(()),
        _ => Err(format!(
            "has {server:?}, whose port {port:?} is no number from 1 to 65535"
        )),
    }
}

/// The parts of a server's name that was checked.
pub(crate) fn host_and_port(server: &str) -> (&str, u16) {
    let (host, port) = split(server);
    (host, port.parse().unwrap_or_default())
}

fn split(server: &str) -> (&str, &str) {
    let bare = server
        .strip_prefix(PLAIN)
        .or_else(|| server.strip_prefix(TLS));
    let server = bare.unwrap_or(server);
    match server.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (server, DEFAULT_PORT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_the_chroot_off() {
        for (text, servers, chroot) in [
            ("h", "h", ""),
            ("h1:2181,h2:2182/a/b", "h1:2181,h2:2182", "/a/b"),
            ("h:2181/", "h:2181", ""),
            ("tcp://h:1,i:2/c", "tcp://h:1,i:2", "/c"),
            ("tcp+tls://h:1/c", "tcp+tls://h:1", "/c"),
            ("[::1]:2181,[::2]/c", "[::1]:2181,[::2]", "/c"),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!((&*address.servers, &*address.chroot), (servers, chroot));
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (bad, why) in [
            ("", "names no server"),
            ("/a", "names no server"),
            ("h:0", "port \"0\" is no number"),
            ("localhost:abc", "port \"abc\" is no number"),
            ("localhost:", "write `localhost:2181`"),
            ("h:1,,i:2", "empty entry"),
            ("h:1,", "empty entry"),
            (":1", "names no host"),
            ("h:99999", "port \"99999\" is no number"),
            ("h:1/a//b", "as a root"),
            ("h:1/..", "as a root"),
            ("a b:1", "' ' cannot be part"),
        ] {
            let error = Address::parse(bad).unwrap_err();
            assert!(matches!(error, ZkError::Options(_)), "{bad}: {error}");
            assert!(error.to_string().contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn an_ensemble_is_known_in_every_spelling() {
        let ensemble = |text| Address::parse(text).unwrap().ensemble();
        let one = ensemble("zk1:2181,zk2:2181/a");
        assert_eq!(one, ensemble("tcp://ZK2,zk1/b"));
        assert_ne!(one, ensemble("zk1:2182,zk2:2181"));
    }
}
