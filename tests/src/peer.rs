//! Programs of other libraries, and ours beside them, that contend for the same locks.

mod curator;
mod kazoo;

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Longer than anything takes that a peer is asked for.
const PATIENCE: Duration = Duration::from_mins(3);

/// A contender in a process of its own, which does what it is told, one order a line.
///
/// It ends once its standard input does, so never after its starter.
#[derive(Debug)]
pub struct Peer {
    name: &'static str,
    // Kept, as it is killed when dropped.
    _child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    /// A program on Curator's recipes, with a session at `address`.
    ///
    /// # Errors
    /// When Curator or a Java compiler is not installed, or the program does not start.
    pub async fn curator(address: &str) -> io::Result<Self> {
        Self::start("Curator", curator::command(address)?).await
    }

    /// A program on Kazoo's recipes, with a session at `address`.
    ///
    /// # Errors
    /// When Kazoo is not installed, or the program does not start.
    pub async fn kazoo(address: &str) -> io::Result<Self> {
        Self::start("Kazoo", kazoo::command(address)?).await
    }

    /// Any program that says `ready`, and then answers orders.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(name: &'static str, mut program: Command) -> io::Result<Self> {
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a child without pipes"));
        };
        let mut peer = Self {
            name,
            _child: child,
            orders,
            answers: BufReader::new(answers).lines(),
        };
        match peer.next().await?.as_deref() {
            Some("ready") => Ok(peer),
            other => Err(io::Error::other(format!("{name} began with {other:?}"))),
        }
    }

    /// Gives an order and waits for its answer.
    ///
    /// # Panics
    /// When the peer has ended, or says nothing.
    pub async fn ask(&mut self, order: &str) -> String {
        let line = format!("{order}\n");
        let told = self.orders.write_all(line.as_bytes()).await;
        told.unwrap_or_else(|error| panic!("{} has ended before {order:?}: {error}", self.name));
        self.hear().await
    }

    /// Waits for the next thing that it says.
    ///
    /// # Panics
    /// When the peer has ended, or says nothing.
    pub async fn hear(&mut self) -> String {
        match self.next().await {
            Ok(Some(line)) => line,
            Ok(None) => panic!("{} has ended", self.name),
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    async fn next(&mut self) -> io::Result<Option<String>> {
        timeout(PATIENCE, self.answers.next_line()).await?
    }
}
