//! Turns Nagle's algorithm off on the client's socket, which the client itself does not offer:
//! otherwise the second of two requests sent together waits for the first one's acknowledgement.

use std::collections::HashSet;

/// Does so for every connection to one of these ports. Where it cannot be done, sending two
/// requests together takes two round trips, and nothing else changes.
pub(crate) async fn on_connections_to(ports: HashSet<u16>) {
    // A process may have very many descriptors.
    let set = tokio::task::spawn_blocking(move || set(&ports)).await;
    if let Ok(Err(error)) = set {
        tracing::debug!(%error, "cannot look for the connections to ZooKeeper");
    }
}

#[cfg(target_os = "linux")]
fn set(ports: &HashSet<u16>) -> std::io::Result<()> {
    use socket2::SockRef;
    use std::fs;
    use std::os::fd::RawFd;

    for entry in fs::read_dir("/proc/self/fd")?.flatten() {
        // Only a socket may be touched: whoever opens and closes a regular file once more drops
        // the locks that the process has on it.
        let is_socket = |path| fs::read_link(path).is_ok_and(|to| is_socket(&to));
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(number) = number.filter(|_: &RawFd| is_socket(entry.path())) else {
            continue;
        };
        let socket = SockRef::from(&number);
        let peer = socket.peer_addr().ok().and_then(|peer| peer.as_socket());
        if peer.is_some_and(|peer| ports.contains(&peer.port())) {
            // It may be closed by now. The option does no harm to a stranger.
            let _ = socket.set_nodelay(true);
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn is_socket(link: &std::path::Path) -> bool {
    link.to_str()
        .is_some_and(|link| link.starts_with("socket:["))
}

#[cfg(not(target_os = "linux"))]
fn set(_: &HashSet<u16>) -> std::io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn sets_the_option_on_the_right_connections_only() {
        let [ours, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let connect = |to: &TcpListener| TcpStream::connect(to.local_addr().unwrap()).unwrap();
        let (near, far) = (connect(&ours), connect(&other));
        set(&HashSet::from([ours.local_addr().unwrap().port()])).unwrap();
        assert!(near.nodelay().unwrap());
        assert!(!far.nodelay().unwrap());
    }
}
