//! Servers end with whoever started them, however that ends.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fenced_tests::shared;
use rustix::process::{Pid, Signal, kill_process};

const GONE_WITHIN: Duration = Duration::from_secs(10);
/// Ends when its standard input does, since an orphan gets no signal.
const TELL_AND_STAY: &str = r#"for name; do eval "echo \$$name"; done; cat"#;

/// A starter of its own servers in place of these shared ones, and their addresses.
fn start(variables: &[&str]) -> (Child, Vec<String>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_servers"));
    command
        .args(["run", "--", "sh", "-c", TELL_AND_STAY, "sh"])
        .args(variables);
    for variable in variables {
        command.env_remove(variable);
    }
    let mut starter = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let told = BufReader::new(starter.stdout.take().unwrap())
        .lines()
        .take(variables.len());
    let addresses = told
        .map(|line| shared::address_in(&line.unwrap()).to_owned())
        .collect();
    (starter, addresses)
}

fn signal(starter: &Child, signal: Signal) {
    let pid = Pid::from_raw(starter.id().try_into().unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn await_gone(address: &str) {
    let deadline = Instant::now() + GONE_WITHIN;
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < deadline, "{address} still answers");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_starter_leaves_no_server() {
    let variables = [shared::ZOOKEEPER, shared::POSTGRES, shared::REDIS];
    let (mut starter, addresses) = start(&variables);
    assert!(
        addresses
            .iter()
            .all(|address| TcpStream::connect(address).is_ok())
    );
    signal(&starter, Signal::KILL);
    starter.wait().unwrap();
    for address in &addresses {
        await_gone(address);
    }
}

#[test]
fn an_interrupted_starter_stops_its_servers_first() {
    for (asked, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (mut starter, addresses) = start(&[shared::REDIS]);
        signal(&starter, asked);
        assert_eq!(starter.wait().unwrap().code(), Some(code));
        assert!(
            addresses
                .iter()
                .all(|address| TcpStream::connect(address).is_err())
        );
    }
}

#[test]
fn the_commands_own_code_is_passed_on() {
    let code = |command| {
        let mut starter = Command::new(env!("CARGO_BIN_EXE_servers"));
        starter
            .args(["run", "--", "sh", "-c", command])
            .status()
            .unwrap()
            .code()
    };
    assert_eq!(code("exit 7"), Some(7));
    assert_eq!(code("kill -9 $$"), Some(137));
}
