use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::child;
use crate::shop::PATIENCE;

/// This very program once more, as a [`child`] that does what it is told.
pub(crate) struct Process {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Process {
    pub(crate) fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", child::TEST, "--nocapture"])
            .env(child::VARIABLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (says, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some((_, answer)) = line.split_once(child::MARK) {
                    let _ = says.send(answer.to_owned());
                }
            }
        });
        Self {
            child: process,
            orders,
            answers,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn tell(&mut self, order: &str) {
        let orders = self.orders.as_mut().unwrap();
        writeln!(orders, "{order}").unwrap();
        orders.flush().unwrap();
    }

    /// The next thing that it says.
    pub(crate) fn hear(&self) -> String {
        let heard = self.answers.recv_timeout(PATIENCE);
        heard.unwrap_or_else(|error| panic!("process {} says nothing: {error}", self.pid()))
    }

    /// What it said and nobody has heard yet, once it has ended.
    pub(crate) fn last_words(&self) -> Vec<String> {
        self.answers.iter().collect()
    }

    pub(crate) fn ask(&mut self, order: &str) -> String {
        self.tell(order);
        self.hear()
    }

    pub(crate) fn open(&mut self, file: &Path, lease: Duration) {
        let order = format!("open {} {}", lease.as_millis(), file.display());
        assert_eq!(self.ask(&order), "opened");
    }

    /// The token that it says it got.
    pub(crate) fn hear_token(&self) -> i64 {
        let said = self.hear();
        let token = said
            .strip_prefix("token ")
            .and_then(|token| token.parse().ok());
        token.unwrap_or_else(|| panic!("{said}"))
    }

    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        self.wait_until_stopped();
    }

    /// Waits until the system shows it as stopped.
    pub(crate) fn wait_until_stopped(&self) {
        let is_stopped = || {
            let state = Command::new("ps")
                .args(["-o", "state=", "-p", &self.pid().to_string()])
                .output()
                .unwrap();
            state.stdout.first() == Some(&b'T')
        };
        let started = std::time::Instant::now();
        while !is_stopped() {
            assert!(started.elapsed() < PATIENCE, "{} runs on", self.pid());
            thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends it at once, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it has ended by itself; says whether in peace.
    pub(crate) fn wait(&mut self) -> bool {
        drop(self.orders.take());
        self.child.wait().unwrap().success()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
