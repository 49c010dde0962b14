//! The servers for the time of one command.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::interrupt::Interrupt;
use crate::servers::Servers;

const GRACE: Duration = Duration::from_secs(5);
/// A shell's exit code for what a signal ended.
const SIGNALLED: i32 = 128;

/// Starts the servers that no variable names yet, runs `command` with the variables set, and
/// ends them; returns the command's own exit code.
///
/// # Errors
/// When a server or the command cannot be started.
///
/// # Panics
/// When `command` is empty.
pub fn run(command: &[OsString]) -> io::Result<ExitCode> {
    Runtime::new()?.block_on(async {
        let mut interrupt = Interrupt::listen()?;
        let servers = Servers::start_missing()?;
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .envs(servers.variables())
            // One group, so that an interrupt reaches also what the command started.
            .process_group(0)
            .spawn()?;
        tokio::select! {
            status = child.wait() => Ok(code_of(status?)),
            signal = interrupt.next() => {
                end_group(&mut child, signal).await?;
                Ok(exit_code(SIGNALLED + signal.as_raw()))
            }
        }
    })
}

/// Passes `signal` on to the child's whole group, and kills what has not ended in time.
async fn end_group(child: &mut Child, signal: Signal) -> io::Result<()> {
    let Some(group) = group_of(child) else {
        return Ok(());
    };
    kill_process_group(group, signal)?;
    // An error says that the grace is over, or that the child cannot be waited for.
    let _ = timeout(GRACE, child.wait()).await;
    match kill_process_group(group, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn group_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()?).ok()?)
}

fn code_of(status: ExitStatus) -> ExitCode {
    let signalled = || SIGNALLED + status.signal().unwrap_or_default();
    exit_code(status.code().unwrap_or_else(signalled))
}

fn exit_code(code: i32) -> ExitCode {
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}
