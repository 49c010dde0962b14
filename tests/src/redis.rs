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

/// A throwaway Redis server, ended and removed when dropped. Its methods block.
#[derive(Debug)]
pub struct Redis {
    process: Option<Process>,
    port: u16,
    folder: TempDir,
}

impl Redis {
    /// Starts a server that keeps its data over a restart.
    ///
    /// # Errors
    /// When Redis is not installed or does not start.
    pub fn start() -> io::Result<Self> {
        let folder = folder::for_server("redis-")?;
        let mut server = Self {
            process: None,
            port: ports::free()?,
            folder,
        };
        server.restart()?;
        Ok(server)
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
        let mut process = Process::start(&self.command()?, "KILL", self.folder.path())?;
        let pid = process.pid();
        ready::wait("Redis", &mut process, || self.serves(pid))?;
        self.process = Some(process);
        Ok(())
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

    /// Whether it is this very server that answers at the port, and it has its data.
    fn serves(&self, pid: Pid) -> bool {
        let ours = format!("process_id:{pid}\r\n");
        self.ask("INFO")
            .is_ok_and(|it| it.contains(&ours) && it.contains("\nloading:0\r\n"))
    }

    fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(installed::redis()?);
        command.args(["--bind", "127.0.0.1", "--port", &self.port.to_string()]);
        command.args(["--save", "", "--appendonly", "yes", "--appendfsync", "no"]);
        command.arg("--dir").arg(self.data());
        Ok(command)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}
