//! The example `inventory`, as a newcomer runs it.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use fenced_tests::shared;
use tempfile::TempDir;

/// The example is built beside the tests.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let built = test.ancestors().nth(2).expect("the folder of the build");
    built.join("examples/inventory")
}

fn run(arguments: &[&str]) -> Output {
    let program = example();
    Command::new(&program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "{}: {error}; build it: cargo build --example inventory --all-features",
                program.display()
            )
        })
}

/// Runs the story, and says what its last line says.
fn figures(arguments: &[&str]) -> String {
    let told = run(arguments);
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let errors = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{text}{errors}");
    text.lines().last().unwrap_or_default().to_owned()
}

const RIGHT: &str =
    r#"{"accepted":4,"refused_stale":1,"refused_local":1,"stock":6,"expected_stock":6}"#;

#[test]
fn tells_its_story_without_a_server() {
    assert_eq!(figures(&["--json"]), RIGHT);
}

#[test]
fn tells_its_story_on_real_servers() {
    let (zk, postgres) = (shared::zookeeper_address(), shared::postgres_url());
    let arguments = ["--zk", &zk, "--postgres", &postgres, "--json"];
    assert_eq!(figures(&arguments), RIGHT);
}

#[test]
fn mixes_files_and_servers() {
    let (zk, postgres) = (shared::zookeeper_address(), shared::postgres_url());
    assert_eq!(figures(&["--zk", &zk, "--json"]), RIGHT);
    assert_eq!(figures(&["--postgres", &postgres, "--json"]), RIGHT);
}

#[test]
fn a_wrong_argument_is_told_with_the_usage() {
    let told = run(&["--bogus"]);
    assert_eq!(told.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&told.stderr);
    assert!(errors.contains("Usage: inventory"), "{errors}");
}

#[test]
fn an_unreachable_server_is_one_clear_line() {
    let told = run(&["--zk", "127.0.0.1:1"]);
    assert_eq!(told.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&told.stderr);
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("127.0.0.1:1"), "{errors}");
}

#[test]
fn a_silent_server_is_not_waited_for() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://shop@{}/shop", silent.local_addr().unwrap());
    let told = run(&["--postgres", &url]);
    assert_eq!(told.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&told.stderr);
    assert!(errors.contains("did not answer"), "{errors}");
}

/// The story, up to where ann is stopped.
fn up_to_the_stop(folder: &TempDir) -> Child {
    let mut story = Command::new(example())
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(story.stdout.as_mut().unwrap()).lines();
    assert!(told.any(|line| line.unwrap().contains("is stopped")));
    story
}

#[test]
fn an_interrupted_story_leaves_nothing_behind() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let folder = tempfile::tempdir().unwrap();
        let story = up_to_the_stop(&folder);
        kill_process(pid(&story), signal).unwrap();
        let ended = story.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{errors}");
        assert!(errors.contains("asked to end"), "{errors}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}

#[test]
fn a_killed_story_leaves_no_stopped_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut story = up_to_the_stop(&folder);
    story.kill().unwrap();
    // The workers inherited its standard error: it is at its end when all of them are.
    let mut errors = BufReader::new(story.stderr.take().unwrap()).lines();
    assert!(errors.all(|line| line.is_ok()));
    story.wait().unwrap();
}

#[test]
fn a_reader_that_went_away_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut story = up_to_the_stop(&folder);
    drop(story.stdout.take());
    let ended = story.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

fn pid(process: &Child) -> Pid {
    Pid::from_child(process)
}
