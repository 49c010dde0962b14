//! The example `http_gateway`, as a newcomer runs it.

use std::process::Command;

const RIGHT: &str = r#"{"carried_out":1,"replayed":1,"refused":1,"failed":0,"percent":75}"#;

fn run(argument: &str) -> std::process::Output {
    // It is built beside the tests.
    let test = std::env::current_exe().expect("the path of this test");
    let built = test.ancestors().nth(2).expect("the folder of the build");
    let program = built.join("examples/http_gateway");
    let output = Command::new(&program).arg(argument).output();
    output.unwrap_or_else(|error| {
        panic!(
            "{}: {error}; build it: cargo build --example http_gateway --all-features",
            program.display()
        )
    })
}

#[test]
fn refuses_the_operator_who_was_stopped() {
    let told = run("--json");
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let errors = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{text}{errors}");
    assert_eq!(text.lines().last(), Some(RIGHT), "{text}");
    assert!(text.contains("is answered 412"), "{text}");
}

#[test]
fn a_wrong_argument_is_told_with_the_usage() {
    let told = run("--bogus");
    assert_eq!(told.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&told.stderr);
    assert!(errors.contains("Usage: http_gateway"), "{errors}");
}
