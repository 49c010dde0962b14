//! One Redis server.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use crate::process::Process;
use crate::{folder, installed, ports, ready};

const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How a server is to be started.
#[derive(Debug, Clone)]
#[must_use]
pub struct RedisOptions {
    settings: Vec<(String, String)>,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            settings: Vec::new(),
        }
        .setting("bind", "127.0.0.1")
        .setting("save", "")
        .setting("appendonly", "yes")
        .setting("appendfsync", "no")
        // A replica gets what is written from the moment at which it is said to be online.
        .setting("repl-diskless-sync", "no")
    }
}

impl RedisOptions {
    /// A parameter of the server's configuration; the last one of a name counts.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    /// When Redis is not installed or does not start.
    pub fn start(self) -> io::Result<Redis> {
        let folder = folder::for_server("redis-")?;
        let mut server = Redis {
            process: None,
            options: self,
            port: ports::free()?,
            folder,
        };
        server.restart()?;
        Ok(server)
    }
}

/// A throwaway Redis server, ended and removed when dropped. Its methods block.
#[derive(Debug)]
pub struct Redis {
    process: Option<Process>,
    options: RedisOptions,
    port: u16,
    folder: TempDir,
}

impl Redis {
    /// Starts a server that keeps its data over a restart.
    ///
    /// # Errors
    /// When Redis is not installed or does not start.
    pub fn start() -> io::Result<Self> {
        Self::options().start()
    }

    /// For a server that differs from the usual one.
    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    /// Starts a server that follows this one, and waits until it has its data.
    ///
    /// # Errors
    /// When it does not start, or does not get the data.
    pub fn replica(&self) -> io::Result<Self> {
        let options = self.options.clone();
        let of = format!("{} {}", Ipv4Addr::LOCALHOST, self.port);
        let mut replica = options.setting("replicaof", &of).start()?;
        replica.wait(|replica, _| self.feeds(replica))?;
        Ok(replica)
    }

    /// The server's URL, the same over all restarts.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}:{}/", Ipv4Addr::LOCALHOST, self.port)
    }

    /// `host:port`, the same over all restarts.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port)
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
        self.stop()?;
        fs::create_dir_all(self.data())?;
        let process = Process::start(&self.command()?, "KILL", self.folder.path())?;
        self.process = Some(process);
        self.wait(Self::serves)
    }

    /// Kills the server and removes all data; [`restart`](Self::restart) starts it empty.
    ///
    /// # Errors
    /// When the process cannot be killed or the data not be removed.
    pub fn wipe(&mut self) -> io::Result<()> {
        self.stop()?;
        fs::remove_dir_all(self.data())
    }

    /// The server's raw answer to one command, in the protocol's own text.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not answer within five seconds.
    pub fn ask(&self, command: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        write!(stream, "{command}\r\nQUIT\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn wait(&mut self, ready: impl Fn(&Self, Pid) -> bool) -> io::Result<()> {
        let Some(mut process) = self.process.take() else {
            return Err(io::Error::other("Redis was stopped"));
        };
        let pid = process.pid();
        ready::wait("Redis", &mut process, || ready(self, pid))?;
        self.process = Some(process);
        Ok(())
    }

    /// Whether the replica has all data, and gets what is written from now on.
    fn feeds(&self, replica: &Self) -> bool {
        let online = format!("port={},state=online", replica.port);
        let tells = |server: &Self, what: &str| {
            let info = server.ask("INFO replication").unwrap_or_default();
            info.contains(what)
        };
        tells(replica, "master_link_status:up") && tells(self, &online)
    }

    /// Whether it is this very server that answers at the port, and it has its data.
    fn serves(&self, pid: Pid) -> bool {
        let ours = format!("process_id:{pid}\r\n");
        self.ask("INFO")
            .is_ok_and(|it| it.contains(&ours) && it.contains("\nloading:0\r\n"))
    }

    fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(installed::redis("redis-server")?);
        command.args(["--port", &self.port.to_string()]);
        command.arg("--dir").arg(self.data());
        for (name, value) in &self.options.settings {
            command.arg(format!("--{name}")).args(value.split(' '));
        }
        Ok(command)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}
