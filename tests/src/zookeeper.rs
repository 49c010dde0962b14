//! One ZooKeeper server.

mod options;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{fs, mem};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::process::Process;
use crate::{installed, ready};

pub use options::ZooKeeperOptions;

const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A server that is just starting may accept a question and never answer it.
const STARTING_ANSWERS_WITHIN: Duration = Duration::from_millis(200);

/// A throwaway ZooKeeper server, ended and removed when dropped. Its methods block.
#[derive(Debug)]
pub struct ZooKeeper {
    process: Option<Process>,
    options: ZooKeeperOptions,
    port: u16,
    folder: TempDir,
}

impl ZooKeeper {
    /// Starts a server that grants session timeouts from 400 ms to 60 s.
    ///
    /// # Errors
    /// When ZooKeeper is not installed or does not start.
    pub fn start() -> io::Result<Self> {
        Self::options().start()
    }

    /// For a server that differs from the usual one.
    pub fn options() -> ZooKeeperOptions {
        ZooKeeperOptions::default()
    }

    /// `host:port`, the same over all restarts.
    #[must_use]
    pub fn address(&self) -> String {
        self.socket().to_string()
    }

    /// `host:port` for TLS, if the server was given a certificate.
    #[must_use]
    pub fn secure_address(&self) -> Option<String> {
        let port = self.options.secure_port?;
        Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)).to_string())
    }

    /// Kills the server (SIGKILL); its data stays.
    ///
    /// # Errors
    /// When the process cannot be killed.
    pub fn stop(&mut self) -> io::Result<()> {
        self.process
            .take()
            .map_or(Ok(()), |process| process.end(Signal::KILL))
    }

    /// Kills the server if it runs, then starts it on the same port and data.
    ///
    /// # Errors
    /// When the server does not start.
    pub fn restart(&mut self) -> io::Result<()> {
        self.launch()?;
        self.await_serving()
    }

    /// Kills the server and removes all data; [`restart`](Self::restart) starts it empty.
    ///
    /// # Errors
    /// When the process cannot be killed or the data not be removed.
    pub fn wipe(&mut self) -> io::Result<()> {
        self.stop()?;
        fs::remove_dir_all(self.data())
    }

    /// Stops the server in its tracks (SIGSTOP).
    ///
    /// # Errors
    /// When the server does not run.
    pub fn pause(&self) -> io::Result<()> {
        self.running()?.signal(Signal::STOP)
    }

    /// Lets a paused server go on (SIGCONT).
    ///
    /// # Errors
    /// When the server does not run.
    pub fn resume(&self) -> io::Result<()> {
        self.running()?.signal(Signal::CONT)
    }

    /// The server's answer to a four-letter word such as `mntr` or `wchp`.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not answer within five seconds.
    pub fn four_letter(&self, word: &str) -> io::Result<String> {
        self.ask(word, ANSWER_WITHIN)
    }

    fn ask(&self, word: &str, within: Duration) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.socket())?;
        stream.set_read_timeout(Some(within))?;
        stream.write_all(word.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    pub(crate) fn launch(&mut self) -> io::Result<()> {
        self.stop()?;
        fs::create_dir_all(self.data())?;
        fs::write(self.config(), self.config_lines())?;
        if let Some(number) = self.options.member {
            fs::write(self.data().join("myid"), number.to_string())?;
        }
        self.process = Some(Process::start(
            &self.command()?,
            "KILL",
            self.folder.path(),
        )?);
        Ok(())
    }

    pub(crate) fn await_serving(&mut self) -> io::Result<()> {
        let Some(mut process) = mem::take(&mut self.process) else {
            return Err(not_running());
        };
        let outcome = ready::wait("ZooKeeper", &mut process, || self.serves());
        self.process = Some(process);
        outcome
    }

    /// Whether it is this very server that answers at the port, and it accepts sessions.
    fn serves(&self) -> bool {
        let ours = format!("dataDir={}", self.data().display());
        let answer = |word| self.ask(word, STARTING_ANSWERS_WITHIN).unwrap_or_default();
        answer("srvr").contains("Mode: ") && answer("conf").contains(&ours)
    }

    fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(installed::java()?);
        command.args([
            "-XX:+UseSerialGC",
            "-Xmx512m",
            "-Djava.net.preferIPv4Stack=true",
        ]);
        command.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn");
        for (name, value) in &self.options.properties {
            command.arg(format!("-D{name}={value}"));
        }
        command.arg("-cp").arg(installed::zookeeper_class_path()?);
        command
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(self.config());
        Ok(command)
    }

    fn config_lines(&self) -> String {
        let tick = self.options.tick.as_millis();
        let data = self.data();
        let own = format!(
            "tickTime={tick}\nminSessionTimeout={}\ndataDir={}\nclientPort={}\nclientPortAddress={}\n",
            2 * tick,
            data.display(),
            self.port,
            Ipv4Addr::LOCALHOST,
        );
        let line = |(name, value): &(String, String)| format!("{name}={value}\n");
        own + &self.options.settings.iter().map(line).collect::<String>()
    }

    fn running(&self) -> io::Result<&Process> {
        self.process.as_ref().ok_or_else(not_running)
    }

    fn socket(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("zoo.cfg")
    }
}

fn not_running() -> io::Error {
    io::Error::other("ZooKeeper does not run")
}
