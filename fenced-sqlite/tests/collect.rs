//! What is collected stays refused.

use fenced_core::{Fate, Fence, FencingSink as _, FencingToken, Mode, Request, SinkError};
use fenced_sqlite::SqliteSink;
use tempfile::TempDir;

const OLD: &str = "/locks/old";
const NEW: &str = "/locks/new";

fn token(number: i64) -> FencingToken {
    number.try_into().unwrap()
}

fn fence(resource: &str, number: i64) -> Fence {
    Fence::new(resource, token(number))
}

fn shared(resource: &str, number: i64) -> Fence {
    let mut fence = fence(resource, number);
    fence.mode = Mode::Shared;
    fence
}

async fn open() -> (TempDir, SqliteSink) {
    let folder = tempfile::tempdir().unwrap();
    let sink = SqliteSink::open(folder.path().join("shop.db")).await;
    (folder, sink.unwrap())
}

async fn collect(sink: &SqliteSink, floor: i64) -> (u64, u64) {
    let collected = sink.collect(token(floor)).await.unwrap();
    (collected.fences, collected.requests)
}

async fn assert_stale(sink: &SqliteSink, fence: Fence, newest: i64) {
    match sink.claim(&fence).await {
        Err(SinkError::Stale { mine, current }) => {
            assert_eq!((mine, current), (fence.token, token(newest)));
        }
        other => panic!("{fence:?} is not stale: {other:?}"),
    }
}

#[tokio::test]
async fn a_token_below_the_floor_is_stale_where_the_row_is_gone() {
    let (_folder, sink) = open().await;
    sink.claim(&fence(OLD, 5)).await.unwrap();
    sink.claim(&fence(NEW, 9)).await.unwrap();
    assert_eq!(collect(&sink, 8).await, (1, 0));
    assert_stale(&sink, fence(OLD, 4), 8).await;
    assert_stale(&sink, shared(OLD, 7), 8).await;
    assert_stale(&sink, fence(OLD, 7).claimed(true), 8).await;
    assert_stale(&sink, fence(NEW, 8), 9).await;
    let unclaimed = sink.claim(&fence(OLD, 8).claimed(true)).await;
    assert!(matches!(unclaimed, Err(SinkError::NotClaimed { .. })));
    sink.claim(&fence(OLD, 8)).await.unwrap();
    sink.claim(&fence(NEW, 9).claimed(true)).await.unwrap();
    // A floor is never lowered.
    assert_eq!(collect(&sink, 2).await, (0, 0));
    assert_stale(&sink, fence("/locks/other", 7), 8).await;
}

#[tokio::test]
async fn a_new_reader_does_not_admit_the_readers_that_were_collected() {
    let (_folder, sink) = open().await;
    sink.claim(&fence(OLD, 7)).await.unwrap();
    assert_eq!(collect(&sink, 8).await, (1, 0));
    sink.claim(&shared(OLD, 10)).await.unwrap();
    assert_stale(&sink, shared(OLD, 6), 8).await;
    sink.claim(&shared(OLD, 9)).await.unwrap();
    assert_stale(&sink, fence(OLD, 9), 10).await;
}

#[tokio::test]
async fn a_request_that_may_have_been_collected_is_unknown() {
    let (_folder, sink) = open().await;
    let sent = |id: &str, number| Request::new(id, &()).sent_under(fence(OLD, number));
    let (applied, lost) = (sent("applied", 5), sent("lost", 5));
    let holder = fence(OLD, 5);
    let written = sink.write(&holder, &applied, Vec::new()).await;
    assert!(!written.unwrap().is_replayed());
    sink.claim(&fence(OLD, 9)).await.unwrap();
    let fate = sink.outcome(&applied).await.unwrap();
    assert!(matches!(fate, Fate::Applied(_)), "{fate:?}");
    assert_eq!(sink.outcome(&lost).await.unwrap(), Fate::Absent);
    assert_eq!(collect(&sink, 6).await, (0, 1));
    for request in [&applied, &lost] {
        assert_eq!(sink.outcome(request).await.unwrap(), Fate::Unknown);
    }
    let later = sink.outcome(&sent("later", 6)).await.unwrap();
    assert_eq!(later, Fate::Absent);
}
