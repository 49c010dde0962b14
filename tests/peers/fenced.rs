//! A contender of ours, in a process of its own: `contender ADDRESS`, then one order a line; ends
//! with its starter.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use fenced::prelude::*;
use fenced::{LockError, section};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Longer than anybody is kept waiting here.
const PATIENCE: Duration = Duration::from_mins(2);

#[tokio::main]
pub(crate) async fn main() -> Result<(), Failure> {
    let address = std::env::args().next_back().unwrap_or_default();
    let mut sessions = vec![ZkLocks::connect(&address).await?];
    println!("ready");
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while let Some(order) = orders.next_line().await? {
        match order.split(' ').collect::<Vec<_>>()[..] {
            ["record", path, folder, times] => {
                record(&sessions[0], path, Path::new(folder), times.parse()?).await?;
            }
            ["contend", path, wanted, tasks, times] => {
                let wanted = wanted.parse()?;
                while sessions.len() < wanted {
                    sessions.push(ZkLocks::connect(&address).await?);
                }
                contend(&sessions[..wanted], path, tasks.parse()?, times.parse()?).await?;
            }
            _ => return Err(format!("unknown order: {order}").into()),
        }
        println!("done");
    }
    for session in sessions {
        session.close().await?;
    }
    Ok(())
}

/// Two inside at once would both create the file; the list has the tokens in their order.
async fn record(locks: &ZkLocks, path: &str, folder: &Path, times: u32) -> Result<(), Failure> {
    let (inside, tokens) = (folder.join("inside"), folder.join("tokens"));
    for _ in 0..times {
        let recorded = section(locks, path).timeout(PATIENCE).run(async |guard| {
            drop(fs::File::create_new(&inside)?);
            let mut tokens = OpenOptions::new().append(true).open(&tokens)?;
            writeln!(tokens, "{}", guard.token())?;
            fs::remove_file(&inside)
        });
        recorded.await??;
    }
    Ok(())
}

/// So many tasks on each session take and free the lock, each so many times.
async fn contend(
    sessions: &[ZkLocks],
    path: &str,
    tasks: usize,
    times: u32,
) -> Result<(), LockError> {
    let mut contenders = JoinSet::new();
    for session in sessions {
        for _ in 0..tasks {
            contenders.spawn(cycle(session.clone(), path.to_owned(), times));
        }
    }
    while let Some(ended) = contenders.join_next().await {
        ended.expect("no contender panics")?;
    }
    Ok(())
}

async fn cycle(locks: ZkLocks, path: String, times: u32) -> Result<(), LockError> {
    for _ in 0..times {
        section(&locks, path.as_str())
            .timeout(PATIENCE)
            .run(async |_| ())
            .await?;
    }
    Ok(())
}
