//! Fences and requests that are collected by a floor.

use fenced::postgres::{Collected, collect, enter, reset};
use fenced::{Fate, Fence, FencingSink, Mode, SinkError};

use crate::database::{Database, SKU, add, fence, request, token};

fn at(resource: &str, number: i64) -> Fence {
    Fence::new(resource, token(number))
}

/// DEL: a fence that is gone admits nobody below the floor.
#[tokio::test]
async fn a_collected_fence_still_refuses_older_holders() {
    let database = Database::new().await;
    let session = database.session().await;
    let sink = &database.sink;
    let request = request("r1").sent_under(fence(33));
    let written = sink.write(&fence(33), &request, add(SKU, 1)).await;
    written.expect("a write").into_answer();
    sink.claim(&at("/locks/young", 90)).await.expect("a claim");
    let collected = collect(&session.client, token(50))
        .await
        .expect("a collection");
    let expected = Collected::default();
    assert_ne!(collected, expected);
    assert_eq!((collected.fences, collected.requests), (1, 1));
    for stale in [33, 34, 49] {
        for claimed in [true, false] {
            let write = sink
                .write(&fence(stale).claimed(claimed), &request, add(SKU, 1))
                .await;
            match write {
                Err(SinkError::Stale { current, .. }) => assert_eq!(current, token(50)),
                other => panic!("{other:?}"),
            }
        }
    }
    sink.claim(&fence(50))
        .await
        .expect("a claim above the floor");
    sink.claim(&at("/locks/young", 89))
        .await
        .expect_err("the young fence is there");
    let fate = sink.outcome(&request).await.expect("a fate");
    assert_eq!(
        fate,
        Fate::Unknown,
        "what was collected may have been applied"
    );
    let again = collect(&session.client, token(20))
        .await
        .expect("a lower floor");
    assert_eq!(again, expected);
    sink.claim(&at("/locks/other", 49))
        .await
        .expect_err("the floor is never lowered");
}

#[tokio::test]
async fn a_fence_in_use_is_not_collected() {
    let database = Database::new().await;
    let mut holding = database.session().await;
    let tx = holding.client.transaction().await.expect("a transaction");
    enter(&tx, &fence(33)).await.expect("the fence");
    tx.commit().await.expect("a commit");
    let tx = holding.client.transaction().await.expect("a transaction");
    enter(&tx, &fence(33).claimed(true))
        .await
        .expect("the fence");
    let session = database.session().await;
    let collected = collect(&session.client, token(50))
        .await
        .expect("a collection");
    assert_eq!(collected.fences, 0);
    tx.commit().await.expect("a commit");
}

#[tokio::test]
async fn a_first_claim_is_measured_from_the_floor() {
    let database = Database::new().await;
    let session = database.session().await;
    collect(&session.client, token(1_000))
        .await
        .expect("a collection");
    let sink = database.sink.clone().max_step(100);
    let far = sink.claim(&fence(1_101)).await;
    assert!(matches!(far, Err(SinkError::Implausible { .. })), "{far:?}");
    sink.claim(&fence(1_100)).await.expect("a claim");
}

#[tokio::test]
async fn a_reset_is_audited() {
    let database = Database::new().await;
    let session = database.session().await;
    database.sink.claim(&fence(1_000)).await.expect("a claim");
    database
        .sink
        .claim(&fence(7))
        .await
        .expect_err("the ensemble lost its data");
    reset(&session.client, SKU, token(5), "")
        .await
        .expect_err("no reason");
    database
        .sink
        .claim(&fence(7))
        .await
        .expect_err("nothing was reset");
    reset(&session.client, SKU, token(5), "restored the ensemble")
        .await
        .expect("a reset");
    database
        .sink
        .claim(&fence(4))
        .await
        .expect_err("older than the reset");
    database.sink.claim(&fence(7)).await.expect("a claim");
    let audit = "SELECT resource, old_token, new_token, reason, done_by FROM fenced.reset";
    let row = session
        .client
        .query_one(audit, &[])
        .await
        .expect("an audit");
    assert_eq!(row.get::<_, &str>(0), SKU);
    assert_eq!((row.get::<_, i64>(1), row.get::<_, i64>(2)), (1_000, 5));
    assert_eq!(row.get::<_, &str>(3), "restored the ensemble");
    assert_eq!(row.get::<_, &str>(4), "postgres");
}

/// A reader's new fence remembers that the writers of before were collected.
#[tokio::test]
async fn a_reader_does_not_readmit_what_was_collected() {
    let database = Database::new().await;
    let session = database.session().await;
    let sink = &database.sink;
    let reader = |number| {
        let mut fence = fence(number);
        fence.mode = Mode::Shared;
        fence
    };
    sink.claim(&fence(7)).await.expect("a writer");
    let collected = collect(&session.client, token(8)).await;
    assert_eq!(collected.expect("a collection").fences, 1);
    sink.claim(&reader(10)).await.expect("a newer reader");
    let stale = sink.claim(&reader(6)).await.expect_err("a stale reader");
    assert!(matches!(stale, SinkError::Stale { .. }), "{stale}");
    sink.claim(&reader(9))
        .await
        .expect("a reader above the floor");
}
