use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::Failure;
use crate::event::{Event, What};
use crate::gateway::{self, Valve};
use crate::operator::Plan;

const PROLOGUE: &str = "\
A gateway moves a valve for whoever holds the valve's lock. Ann has the lock, and is stopped with
SIGSTOP just before her command is sent. Her lease runs out, and ben takes over.
";

/// What came of it.
#[derive(Default, Serialize)]
struct Figures {
    carried_out: u32,
    replayed: u32,
    refused: u32,
    failed: u32,
    percent: u8,
}

/// Tells the story, and says whether it ended as it should.
pub(crate) async fn tell(json: bool) -> Result<bool, Failure> {
    let folder = tempfile::tempdir()?;
    let valve = Arc::new(Valve::default());
    let url = gateway::start(folder.path(), Arc::clone(&valve)).await?;
    println!("{PROLOGUE}\n   time  who       token  what");
    let mut stage = Stage {
        url,
        started: Instant::now(),
        figures: Figures::default(),
    };
    stage.take_over(folder.path()).await?;

    let mut figures = stage.figures;
    (figures.carried_out, figures.percent) = (valve.moved(), valve.percent());
    let right = figures.percent == 75
        && (figures.carried_out, figures.replayed) == (1, 1)
        && (figures.refused, figures.failed) == (1, 0);
    println!(
        "\n{} command carried out, {} late one refused by the gateway. The valve is {} % open: {}.",
        figures.carried_out,
        figures.refused,
        figures.percent,
        if right { "right" } else { "WRONG" }
    );
    if json {
        println!("{}", serde_json::to_string(&figures)?);
    }
    Ok(right)
}

struct Stage {
    url: String,
    started: Instant,
    figures: Figures,
}

impl Stage {
    /// Ann is stopped, ben commands, ann goes on.
    async fn take_over(&mut self, folder: &Path) -> Result<(), Failure> {
        let mut ann = Process::start("ann", Plan::Stop, folder, &self.url)?;
        while let Some(event) = ann.next().await? {
            self.show("ann", &event);
            if matches!(event.what, What::Stopping) {
                break;
            }
        }
        ann.is_stopped().await?;

        self.narrate("ben queues for the lock; it is his once ann's lease has run out");
        let mut ben = Process::start("ben", Plan::Command, folder, &self.url)?;
        while let Some(event) = ben.next().await? {
            self.show("ben", &event);
        }
        ben.finish().await?;

        self.narrate("ann is continued, knows nothing of this, and sends her command");
        kill_process(ann.pid, Signal::CONT)?;
        while let Some(event) = ann.next().await? {
            self.show("ann", &event);
        }
        ann.finish().await
    }

    fn narrate(&self, text: &str) {
        self.line("", "", text);
    }

    fn show(&mut self, who: &str, event: &Event) {
        match event.what {
            What::Replayed { .. } => self.figures.replayed += 1,
            What::Refused { .. } => self.figures.refused += 1,
            What::Failed { .. } => self.figures.failed += 1,
            _ => {}
        }
        self.line(who, &event.token.to_string(), &event.text());
    }

    fn line(&self, who: &str, token: &str, text: &str) {
        let time = self.started.elapsed().as_secs_f32();
        println!("{time:6.2}s  {who:<6} {token:>8}  {text}");
    }
}

/// An operator's process.
struct Process {
    child: Child,
    pid: Pid,
    events: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(name: &str, plan: Plan, folder: &Path, url: &str) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--operator", name, "--plan", plan.name(), "--gateway", url]);
        command.arg("--folder").arg(folder);
        let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let id = process.id().and_then(|id| i32::try_from(id).ok());
        let output = process.stdout.take().ok_or("an operator without output")?;
        Ok(Self {
            child: process,
            pid: id
                .and_then(Pid::from_raw)
                .ok_or("an operator without a process id")?,
            events: BufReader::new(output).lines(),
        })
    }

    async fn next(&mut self) -> Result<Option<Event>, Failure> {
        match self.events.next_line().await? {
            Some(line) => Ok(Some(serde_json::from_str(&line)?)),
            None => Ok(None),
        }
    }

    /// Waits until the process has really stopped.
    async fn is_stopped(&self) -> Result<(), Failure> {
        let pid = self.pid;
        let stopped = tokio::task::spawn_blocking(move || {
            let how = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(pid), how)
        });
        stopped.await??;
        Ok(())
    }

    async fn finish(mut self) -> Result<(), Failure> {
        let status = self.child.wait().await?;
        if !status.success() {
            return Err(format!("an operator ended with {status}").into());
        }
        Ok(())
    }
}
