//! The example `inventory`, as a newcomer runs it.

use std::path::PathBuf;
use std::process::{Command, Output};

use fenced_tests::shared;

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
