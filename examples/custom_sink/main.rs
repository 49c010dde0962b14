//! A sink of one's own: an append-only file that keeps its fence in the same fsync as its data.
//!
//! `cargo run --example custom_sink` shows it at work; `cargo test --example custom_sink
//! --features testing` runs the suite that every sink has to pass.

mod journal;
mod line;
mod seen;
#[cfg(all(test, feature = "testing"))]
mod tests;

use fenced::prelude::*;
use fenced::{FencingToken, MemoryLocks, OnLost, section};

use crate::journal::Journal;
use crate::line::Movement;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const SHELF: &str = "/locks/shelf/12";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let (locks, shelf) = (
        MemoryLocks::new(),
        Journal::open(&folder.path().join("shelf"))?,
    );
    let five = move_in(&locks, &shelf, "delivery-1", 5).await?;
    println!("delivery-1 brought 5: there are {five}");
    let five = move_in(&locks, &shelf, "delivery-1", 5).await?;
    println!("delivery-1 was reported again: there are {five}");

    let late = section(&locks, SHELF).on_lost(OnLost::Finish);
    late.run(async |guard| {
        let shelf = guard.fence(&shelf);
        shelf.claim().await?;
        let fence = shelf.fence()?;
        // Somebody else gets the lock while this one is away.
        newer_holder(shelf.sink(), fence.token).await?;
        let write = shelf.write(Request::new("audit-1", "0"), Movement::Set(0));
        match write.await {
            Err(refused @ SinkError::Stale { .. }) => println!("a late write: {refused}"),
            other => return Err(format!("not refused: {other:?}").into()),
        }
        Ok::<_, Failure>(())
    })
    .await??;

    let count = shelf.count(SHELF).await?;
    println!("there are {count}");
    if count == 8 {
        Ok(())
    } else {
        Err("there should be 8".into())
    }
}

async fn move_in(
    locks: &MemoryLocks,
    shelf: &Journal,
    delivery: &str,
    amount: i64,
) -> Result<i64, Failure> {
    section(locks, SHELF)
        .run(async |guard| {
            let request = Request::new(delivery, &amount);
            let moved = guard.fence(shelf).write(request, Movement::Add(amount));
            Ok::<_, Failure>(moved.await?.into_answer())
        })
        .await?
}

/// What a process does that was granted the lock next.
async fn newer_holder(shelf: &Journal, older: FencingToken) -> Result<(), Failure> {
    let fence = fenced::Fence::new(SHELF, FencingToken::try_from(older.get() + 1)?);
    shelf.claim(&fence).await?;
    let request = Request::new("delivery-2", &3);
    let count = shelf.write(&fence, &request, Movement::Add(3)).await?;
    println!(
        "delivery-2, by a newer holder: there are {}",
        count.into_answer()
    );
    Ok(())
}
