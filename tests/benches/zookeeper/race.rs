use fenced_tests::{Peer, Times, shared};
use futures::future::join_all;

use crate::crowd::Crowd;

/// What both sides do by turns: contenders of one path take and free its lock.
pub(crate) struct Race {
    name: &'static str,
    /// How many times as fast as Curator we want to be.
    wanted: f64,
    processes: usize,
    sessions: usize,
    tasks: usize,
    times: usize,
}

/// The first of them is not counted.
const ROUNDS: usize = 12;

impl Race {
    /// One contender.
    pub(crate) fn new(name: &'static str, wanted: f64) -> Self {
        Self {
            name,
            wanted,
            processes: 1,
            sessions: 1,
            tasks: 1,
            times: 1,
        }
    }

    pub(crate) fn processes(self, processes: usize) -> Self {
        Self { processes, ..self }
    }

    /// Of each process.
    pub(crate) fn sessions(self, sessions: usize) -> Self {
        Self { sessions, ..self }
    }

    /// Of each session; threads, on Curator's side.
    pub(crate) fn tasks(self, tasks: usize) -> Self {
        Self { tasks, ..self }
    }

    /// How often each contender takes the lock, in each round.
    pub(crate) fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    pub(crate) async fn run(self, crowd: &mut Crowd) {
        let mut times = Times::default();
        let ours = &mut crowd.ours[..self.processes];
        let curators = &mut crowd.curators[..self.processes];
        let paths = [(); 2].map(|()| format!("{}/lock", shared::fresh_root()));
        for round in 0..=ROUNDS {
            if round == 1 {
                times = Times::default();
            }
            self.take(&mut times, self.name, ours, &paths[0]).await;
            self.take(&mut times, "Curator's", curators, &paths[1])
                .await;
        }
        times.compare(self.name, "Curator's", self.wanted);
    }

    async fn take(&self, times: &mut Times, kind: &'static str, peers: &mut [Peer], path: &str) {
        let each = self.sessions * self.tasks * self.times;
        let operations = u32::try_from(peers.len() * each).expect("a number of operations");
        let order = format!(
            "contend {path} {} {} {}",
            self.sessions, self.tasks, self.times
        );
        let contended = join_all(peers.iter_mut().map(|peer| peer.ask(&order)));
        times.take(kind, operations, contended).await;
    }
}
