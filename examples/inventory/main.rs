//! Two processes sell from one stock. One of them is stopped while it holds the lock, for longer
//! than its lease, and the other takes over. Then the first one goes on, and may do no harm.
//!
//! ```text
//! cargo run --example inventory
//! cargo run --example inventory --features zookeeper,postgres -- --zk HOST:PORT --postgres URL
//! ```

mod args;
mod embedded;
mod event;
mod process;
#[cfg(any(feature = "zookeeper", feature = "postgres"))]
mod servers;
mod shop;
mod stall;
mod stock;
mod story;
mod timeline;
mod worker;
mod world;

use std::error::Error;
use std::io::{Write as _, stderr};
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use args::{Args, Role};
use world::Failure;

#[tokio::main]
async fn main() -> ExitCode {
    let args = match Args::read() {
        Ok(args) => args,
        Err(error) => {
            eprintln!("inventory: {error}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    let done = match &args.role {
        Role::Narrator => tokio::select! {
            told = story::tell(&args) => told,
            ended = asked_to_end() => ended,
        },
        Role::Worker { name, plan } => worker::work(&args, name, *plan).await.map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Who reads no output may read no errors either.
            let _ = writeln!(stderr(), "inventory: {}", with_causes(&*error));
            ExitCode::FAILURE
        }
    }
}

/// A ^C or its like: the story is dropped, and with it its workers and its folder.
async fn asked_to_end() -> Result<bool, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Err("it was asked to end".into())
}

/// The error, and what is behind it as far as it does not say so itself.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(cause) = behind {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        behind = cause.source();
    }
    text
}
