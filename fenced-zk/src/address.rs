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
        self.servers.split(',').filter_map(port).collect()
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
        if servers.contains("tcp+tls://") {
            return unusable("asks for TLS, which this library does not speak yet");
        }
        if let Some(server) = servers.split(',').find(|server| !is_server(server)) {
            return unusable(&format!("has {server:?}, which is no `host:port`"));
        }
        Ok(Self {
            servers: servers.to_owned(),
            chroot: folder(chroot)?,
        })
    }
}

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

fn is_server(server: &str) -> bool {
    let (host, _) = split(server);
    let is_host = |c: char| c.is_alphanumeric() || "-._[]:%".contains(c);
    !host.is_empty() && host.chars().all(is_host) && port(server).is_some()
}

fn port(server: &str) -> Option<u16> {
    split(server).1.parse().ok().filter(|port| *port != 0)
}

fn split(server: &str) -> (&str, &str) {
    let server = server.strip_prefix("tcp://").unwrap_or(server);
    match server.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (server, "2181"),
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
            ("[::1]:2181,[::2]/c", "[::1]:2181,[::2]", "/c"),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!((&*address.servers, &*address.chroot), (servers, chroot));
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for bad in [
            "",
            "/a",
            "h:0",
            "h:x",
            "h:1,,i:2",
            ":1",
            "h:99999",
            "h:1/a//b",
            "h:1/..",
            "tcp+tls://h:1",
            "a b:1",
        ] {
            let error = Address::parse(bad).unwrap_err();
            assert!(matches!(error, ZkError::Options(_)), "{bad}: {error}");
        }
    }
}
