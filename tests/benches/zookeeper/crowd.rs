//! As many processes of ours as of Curator's.

use std::io;

use fenced_tests::{Peer, shared};
use futures::future::join_all;
use tokio::process::Command;

/// What makes this very program a contender.
pub(crate) const CONTENDER: &str = "--contender";

pub(crate) struct Crowd {
    pub(crate) ours: Vec<Peer>,
    pub(crate) curators: Vec<Peer>,
}

impl Crowd {
    pub(crate) async fn start(address: &str, processes: usize) -> io::Result<Self> {
        let (mut ours, mut curators) = (Vec::new(), Vec::new());
        for _ in 0..processes {
            let mut contender = Command::new(std::env::current_exe()?);
            contender.args([CONTENDER, address]);
            ours.push(Peer::start("contender", contender).await?);
            curators.push(Peer::curator(address).await?);
        }
        Ok(Self { ours, curators })
    }

    /// Until a Java machine has compiled what it runs often.
    pub(crate) async fn warm_up(&mut self) {
        join_all(self.curators.iter_mut().map(async |peer| {
            let order = format!("contend {}/lock 1 1 2000", shared::fresh_root());
            peer.ask(&order).await
        }))
        .await;
    }
}
