//! A server process that cannot outlive whoever started it.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Runs the server, and ends it and removes its folder once the standard input closes.
/// The kernel closes that however the process at its other end came to die.
const WATCHDOG: &str = r#"
exec 3<&0
signal=$1 folder=$2
shift 2
"$@" </dev/null >>"$folder/log" 2>&1 3<&- &
server=$!
echo "$server"
(read -r _ <&3; : >"$folder/orphaned"; kill -s "$signal" "$server"; kill -s CONT "$server") &
wait "$server" 2>/dev/null
code=$?
kill "$!" 2>/dev/null
[ -e "$folder/orphaned" ] && rm -rf "$folder"
exit "$code"
"#;

/// A running server; dropping it ends the server and removes its folder.
#[derive(Debug)]
pub(crate) struct Process {
    watchdog: Child,
    // Apart from the child, whose `wait` would close it and so end the server.
    lifeline: Option<ChildStdin>,
    pid: Pid,
    folder: PathBuf,
}

impl Process {
    /// Starts `server`, its output going to `log` in `folder`; `end` is the signal that ends it.
    pub(crate) fn start(server: &Command, end: &str, folder: &Path) -> io::Result<Self> {
        let mut watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "watchdog", end])
            .arg(folder)
            .arg(server.get_program())
            .args(server.get_args())
            .current_dir(folder)
            // A ^C is for the one who started us, and must not stop the watchdog first.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lifeline = watchdog.stdin.take();
        let pid = told_pid(watchdog.stdout.take())?;
        let folder = folder.to_owned();
        Ok(Self {
            watchdog,
            lifeline,
            pid,
            folder,
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid, signal)?)
    }

    /// Sends `signal` and waits until the server is gone; its folder stays.
    pub(crate) fn end(mut self, signal: Signal) -> io::Result<()> {
        if self.exited()?.is_none() {
            self.signal(signal)?;
            self.watchdog.wait()?;
        }
        Ok(())
    }

    /// How the server ended, if it did.
    pub(crate) fn exited(&mut self) -> io::Result<Option<ExitStatus>> {
        self.watchdog.try_wait()
    }

    /// The last lines the server wrote.
    pub(crate) fn last_words(&self) -> String {
        let Ok(log) = File::open(self.folder.join("log")) else {
            return String::from("(no log)");
        };
        let lines: Vec<_> = BufReader::new(log).lines().map_while(Result::ok).collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // Nobody is left to be told, and the watchdog ends in any case.
        let _ = self.watchdog.wait();
    }
}

fn told_pid(watchdog: Option<ChildStdout>) -> io::Result<Pid> {
    let mut line = String::new();
    if let Some(stdout) = watchdog {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    line.trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other(format!("the watchdog told {line:?}, not a process id")))
}
