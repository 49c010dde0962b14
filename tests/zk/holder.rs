//! A process that holds a lock, of the tests that stop and kill it:
//! `holder ADDRESS ROOT PATH TIMEOUT_MS`.
//!
//! It says on standard output what it does, one thing a line; a `write` is what it would send to
//! a resource, to be judged by whoever reads it.

use std::time::Duration;

use fenced::prelude::*;
use fenced::{LockPath, MemorySink, zookeeper::ZkLocks};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, root, path, timeout] = arguments.as_slice() else {
        return Err("usage: holder ADDRESS ROOT PATH TIMEOUT_MS".into());
    };
    let timeout = Duration::from_millis(timeout.parse()?);
    let builder = ZkLocks::builder().root(root).session_timeout(timeout);
    let locks = builder.connect(address).await?;
    let path = LockPath::new(path.as_str())?;
    loop {
        println!("waiting");
        let patience = Duration::from_mins(5);
        let held = section(&locks, &path).timeout(patience).run(hold).await;
        match held {
            Err(LockError::Lost(loss)) => println!("lost {:?}", loss.reason),
            other => println!("ended {other:?}"),
        }
    }
}

/// Writes as long as the lease allows it.
async fn hold(guard: FencedGuard<'_>) {
    println!("held {}", guard.token());
    let sink = MemorySink::new();
    loop {
        let resource = guard.fence(&sink);
        match resource.fence() {
            Ok(fence) => println!("write {}", fence.token),
            Err(error) => println!("refused {error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
