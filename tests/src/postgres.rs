//! One PostgreSQL server.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getuid};
use tempfile::TempDir;

use crate::process::Process;
use crate::{folder, installed, ports, ready};

/// Whom root lets the server run as, which refuses root.
const UNPRIVILEGED: &str = "postgres";
/// How long the processes of a killed server may keep the next one from starting.
const ORPHANS_GONE_WITHIN: Duration = Duration::from_secs(10);

/// How a server is to be started.
#[derive(Debug, Clone)]
#[must_use]
pub struct PostgresOptions {
    settings: Vec<(String, String)>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            settings: Vec::new(),
        }
        .setting("listen_addresses", "127.0.0.1")
        // A path below `target/` may be longer than a socket's may be.
        .setting("unix_socket_directories", "")
        .setting("max_connections", "300")
        .fsync(false)
    }
}

impl PostgresOptions {
    /// Whether a commit is on the disk before it is answered (not, unless asked for).
    pub fn fsync(self, fsync: bool) -> Self {
        let value = if fsync { "on" } else { "off" };
        self.setting("fsync", value)
            .setting("full_page_writes", value)
    }

    /// A parameter of the server's configuration; the last one of a name counts.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Creates a cluster, starts its server and waits until it accepts connections.
    ///
    /// # Errors
    /// When PostgreSQL is not installed or does not start.
    pub fn start(self) -> io::Result<Postgres> {
        let folder = enterable_folder()?;
        let mut server = Postgres {
            process: None,
            options: self,
            port: ports::free()?,
            folder,
        };
        server.create_cluster()?;
        server.restart()?;
        Ok(server)
    }
}

/// A throwaway PostgreSQL server, ended and removed when dropped. Its methods block.
#[derive(Debug)]
pub struct Postgres {
    process: Option<Process>,
    options: PostgresOptions,
    port: u16,
    folder: TempDir,
}

impl Postgres {
    /// Starts a server that does not sync its log.
    ///
    /// # Errors
    /// When PostgreSQL is not installed or does not start.
    pub fn start() -> io::Result<Self> {
        Self::options().start()
    }

    /// For a server that differs from the usual one.
    pub fn options() -> PostgresOptions {
        PostgresOptions::default()
    }

    /// The URL of the database `postgres`, the same over all restarts.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.address())
    }

    /// `host:port`, the same over all restarts.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// Kills the server's first process (SIGKILL); its data stays.
    ///
    /// # Errors
    /// When the process cannot be killed.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process
            .take()
            .map_or(Ok(()), |process| process.end(Signal::KILL))
    }

    /// Ends the server if it runs ("fast": open transactions are rolled back), then starts it
    /// on the same port and data.
    ///
    /// # Errors
    /// When the server does not start.
    pub fn restart(&mut self) -> io::Result<()> {
        if let Some(process) = self.process.take() {
            process.end(Signal::INT)?;
        }
        let deadline = Instant::now() + ORPHANS_GONE_WITHIN;
        loop {
            match self.launch() {
                Err(_) if Instant::now() < deadline => {}
                outcome => return outcome,
            }
        }
    }

    fn launch(&mut self) -> io::Result<()> {
        let mut process = Process::start(&self.command()?, "QUIT", self.folder.path())?;
        let pid = process.pid();
        ready::wait("PostgreSQL", &mut process, || self.accepts(pid))?;
        self.process = Some(process);
        Ok(())
    }

    /// The first line of this file is the server's process id, the last its state.
    fn accepts(&self, pid: Pid) -> bool {
        let lines = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let first = lines.lines().next().unwrap_or_default();
        let last = lines.lines().last().unwrap_or_default();
        first == pid.to_string() && last.trim() == "ready"
    }

    fn create_cluster(&self) -> io::Result<()> {
        let mut initdb = as_unprivileged(&installed::postgres("initdb")?);
        initdb.args(["--no-sync", "--auth=trust", "--username=postgres"]);
        initdb
            .args(["--encoding=UTF8", "--locale=C", "--pgdata"])
            .arg(self.data());
        // An interrupt is for the starter, who ends what it has started.
        output(initdb.process_group(0))?;
        Ok(())
    }

    fn command(&self) -> io::Result<Command> {
        let mut command = as_unprivileged(&installed::postgres("postgres")?);
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()]);
        for (name, value) in &self.options.settings {
            command.args(["-c", &format!("{name}={value}")]);
        }
        Ok(command)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

/// A folder that whoever runs the server owns and can reach: under `target/` if possible.
fn enterable_folder() -> io::Result<TempDir> {
    let folder = folder::for_server("postgres-")?;
    hand_over(folder.path())?;
    let mut probe = as_unprivileged(Path::new("ls"));
    if output(probe.arg(folder.path())).is_ok() {
        return Ok(folder);
    }
    let folder = folder::outside_target("postgres-")?;
    hand_over(folder.path())?;
    Ok(folder)
}

fn hand_over(folder: &Path) -> io::Result<()> {
    if getuid().is_root() {
        chown(folder, Some(id("-u")?), Some(id("-g")?))?;
    }
    Ok(())
}

fn id(kind: &str) -> io::Result<u32> {
    let answer = output(Command::new("id").args([kind, UNPRIVILEGED]))?;
    answer.trim().parse().map_err(io::Error::other)
}

fn as_unprivileged(program: &Path) -> Command {
    if !getuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid",
        UNPRIVILEGED,
        "--regid",
        UNPRIVILEGED,
        "--init-groups",
        "--",
    ]);
    command.arg(program);
    command
}

fn output(command: &mut Command) -> io::Result<String> {
    let output = command.current_dir("/").output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "{command:?} failed ({}): {said}",
        output.status
    )))
}
