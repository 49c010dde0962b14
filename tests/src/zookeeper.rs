//! One ZooKeeper server.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{fs, mem};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::process::Process;
use crate::{folder, installed, ports, ready};

const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A server that is just starting may accept a question and never answer it.
const STARTING_ANSWERS_WITHIN: Duration = Duration::from_millis(200);

/// How a server is to be started.
#[derive(Debug, Clone)]
#[must_use]
pub struct ZooKeeperOptions {
    tick: Duration,
    settings: Vec<(String, String)>,
    properties: Vec<(String, String)>,
}

impl Default for ZooKeeperOptions {
    fn default() -> Self {
        Self {
            tick: Duration::from_millis(200),
            settings: Vec::new(),
            properties: Vec::new(),
        }
        .setting("admin.enableServer", "false")
        .setting("4lw.commands.whitelist", "*")
        .setting("extendedTypesEnabled", "true")
        .setting("maxClientCnxns", "0")
        .setting("maxSessionTimeout", "60000")
        .setting("initLimit", "50")
        .setting("syncLimit", "25")
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
