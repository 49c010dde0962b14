//! Servers that stay after the command that started them, until they are told to go.

use std::env;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, setsid};
use tokio::runtime::Runtime;

use crate::folder::servers_folder;
use crate::interrupt::Interrupt;
use crate::servers::Servers;

/// The word that makes the `servers` program the keeper of background servers.
pub const KEEP: &str = "keep";
const END_OF_EXPORTS: &str = "# ready";
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Starts the servers, unless they run already, and returns the lines that export their variables.
///
/// # Errors
/// When a server cannot be started.
pub fn up() -> io::Result<String> {
    loop {
        let (file, running) = state()?;
        if !running {
            drop(file);
            return start_keeper();
        }
        let exports: String = io::read_to_string(file)?
            .split_inclusive('\n')
            .skip(1)
            .collect();
        if !exports.is_empty() {
            return Ok(exports);
        }
        // Another `up` is starting them.
        sleep(BETWEEN_LOOKS);
    }
}

fn start_keeper() -> io::Result<String> {
    let mut keeper = Command::new(env::current_exe()?)
        .arg(KEEP)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut exports = String::new();
    for line in keeper
        .stdout
        .take()
        .into_iter()
        .flat_map(|pipe| BufReader::new(pipe).lines())
    {
        match line? {
            line if line == END_OF_EXPORTS => return Ok(exports),
            line => exports += &(line + "\n"),
        }
    }
    Err(io::Error::other(format!(
        "the keeper ended: {}",
        keeper.wait()?
    )))
}

/// Ends the servers and waits until they are gone; false if none ran.
///
/// # Errors
/// When their keeper cannot be told.
pub fn down() -> io::Result<bool> {
    let (file, running) = state()?;
    if running {
        let mut first = String::new();
        BufReader::new(&file).read_line(&mut first)?;
        let keeper = first
            .trim_start_matches('#')
            .trim()
            .parse()
            .ok()
            .and_then(Pid::from_raw);
        kill_process(
            keeper.ok_or_else(|| io::Error::other("the keeper is unknown"))?,
            Signal::TERM,
        )?;
        // Free once the keeper has ended, whatever that takes.
        file.lock()?;
    }
    Ok(running)
}

/// Keeps the servers until a signal asks to end them.
///
/// # Errors
/// When a server cannot be started, or another keeper runs.
pub fn keep() -> io::Result<()> {
    Runtime::new()?.block_on(async {
        let mut interrupt = Interrupt::listen()?;
        // An error says that we lead a session already.
        let _ = setsid();
        let (mut file, running) = state()?;
        if running {
            return Err(io::Error::other("the servers are being started by another"));
        }
        file.set_len(0)?;
        let servers = Servers::start()?;
        let exports = exports(&servers);
        write!(file, "# {}\n{exports}", process::id())?;
        println!("{exports}{END_OF_EXPORTS}");
        interrupt.next().await;
        Ok(())
    })
}

fn exports(servers: &Servers) -> String {
    let lines = servers
        .variables()
        .map(|(name, value)| format!("export {name}={value}"));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// The file that tells who keeps the servers, and whether someone does: a keeper holds the
/// file's lock as long as it lives.
fn state() -> io::Result<(File, bool)> {
    fs::create_dir_all(servers_folder())?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(state_file())?;
    match file.try_lock() {
        Ok(()) => Ok((file, false)),
        Err(TryLockError::WouldBlock) => Ok((file, true)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Tells who keeps the servers; another `CARGO_TARGET_DIR` has one of its own.
#[must_use]
pub fn state_file() -> PathBuf {
    servers_folder().join("up")
}
