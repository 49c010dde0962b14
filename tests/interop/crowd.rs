//! Many processes of several libraries on one path, judged by what they leave in a folder.

use std::fs;

use fenced_tests::{Peer, shared};
use futures::future::join_all;
use tokio::process::Command;

/// Of each library.
pub(crate) const PROCESSES: usize = 3;
/// Of each process.
const GRANTS: usize = 500;

/// Processes of ours. The program is an example, and built beside the tests.
pub(crate) async fn ours() -> Vec<Peer> {
    let test = std::env::current_exe().expect("the path of this test");
    let built = test.ancestors().nth(2).expect("the folder of the build");
    let mut peers = Vec::new();
    for _ in 0..PROCESSES {
        let mut contender = Command::new(built.join("examples/contender"));
        contender.arg(shared::zookeeper_address());
        let peer = Peer::start("contender", contender).await;
        peers.push(
            peer.expect(
                "`contender` is built: cargo build --all-features -p fenced-tests --examples",
            ),
        );
    }
    peers
}

/// Each process takes the lock so many times. Inside, it creates a file that must not exist,
/// notes its token, and removes the file.
pub(crate) async fn record(mut peers: Vec<Peer>) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("tokens"), "").expect("a list");
    let path = format!("{}/crowd", shared::fresh_root());
    let order = format!("record {path} {} {GRANTS}", folder.path().display());
    let ended = join_all(peers.iter_mut().map(|peer| peer.ask(&order))).await;
    assert!(ended.iter().all(|it| it == "done"), "{ended:?}");

    let tokens = fs::read_to_string(folder.path().join("tokens")).expect("a list");
    let tokens: Vec<i64> = tokens
        .lines()
        .map(|it| it.parse().expect("a token"))
        .collect();
    assert_eq!(tokens.len(), peers.len() * GRANTS);
    let regressed = tokens.windows(2).find(|pair| pair[0] >= pair[1]);
    assert_eq!(regressed, None, "tokens do not rise");
    assert!(!folder.path().join("inside").exists());
}
