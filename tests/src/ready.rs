//! Waiting for a server by asking it.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::process::Process;

const PATIENCE: Duration = Duration::from_mins(1);
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(10);

/// Asks until `ready` says so; fails once the server ended or does not get ready.
pub(crate) fn wait(
    server: &str,
    process: &mut Process,
    mut ready: impl FnMut() -> bool,
) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !ready() {
        if let Some(status) = process.exited()? {
            return Err(failure(
                server,
                &format!("ended at its start ({status})"),
                process,
            ));
        }
        if Instant::now() > deadline {
            return Err(failure(
                server,
                &format!("is not ready after {PATIENCE:?}"),
                process,
            ));
        }
        sleep(BETWEEN_QUESTIONS);
    }
    Ok(())
}

fn failure(server: &str, what: &str, process: &Process) -> io::Error {
    io::Error::other(format!(
        "{server} {what}; its last words:\n{}",
        process.last_words()
    ))
}
