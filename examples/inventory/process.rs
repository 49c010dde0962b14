use std::process::Stdio;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::args::Args;
use crate::event::Event;
use crate::worker::Plan;
use crate::world::Failure;

/// A worker process; dropping it ends it.
pub(crate) struct Process {
    child: Child,
    pid: Pid,
    events: Lines<BufReader<ChildStdout>>,
}

impl Process {
    pub(crate) fn start(world: &Args, name: &str, plan: Plan) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--worker", name, "--plan", plan.name()]);
        for (option, value) in [
            ("--zk", &world.zk),
            ("--postgres", &world.postgres),
            ("--folder", &world.folder),
            ("--sku", &world.sku),
        ] {
            if let Some(value) = value {
                command.args([option, value]);
            }
        }
        // Should this process be killed, the system hangs up on those that are stopped in a group
        // that lost its parent. On Linux they also die with it.
        let mut child = command
            .process_group(0)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let output = child.stdout.take().ok_or("a worker without output")?;
        Ok(Self {
            child,
            pid: id
                .and_then(Pid::from_raw)
                .ok_or("a worker without a process id")?,
            events: BufReader::new(output).lines(),
        })
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Failure> {
        match self.events.next_line().await? {
            Some(line) => Ok(Some(serde_json::from_str(&line)?)),
            None => Ok(None),
        }
    }

    /// Waits until the process has really stopped.
    pub(crate) async fn is_stopped(&self) -> Result<(), Failure> {
        let pid = self.pid;
        let stopped = tokio::task::spawn_blocking(move || {
            let how = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(pid), how)
        });
        stopped
            .await?
            .map_err(|error| format!("a worker did not stop as planned: {error}"))?;
        Ok(())
    }

    pub(crate) fn go_on(&self) -> Result<(), Failure> {
        Ok(kill_process(self.pid, Signal::CONT)?)
    }

    pub(crate) async fn finish(mut self) -> Result<(), Failure> {
        let status = self.child.wait().await?;
        if !status.success() {
            return Err(format!("a worker ended with {status}").into());
        }
        Ok(())
    }
}

impl Drop for Process {
    /// Waits for its end: it must write nothing into a folder that is being removed.
    fn drop(&mut self) {
        if self.child.start_kill().is_ok() {
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let _ = waitid(WaitId::Pid(self.pid), how);
        }
    }
}
