//! Fences that came from elsewhere, whose lease nobody here can watch.

use fenced::postgres::{PassedTx, PgSink};
use fenced::{Answer, Fence, FencingSink, Opened, Outcome, SinkError, TransactionalSink};

use crate::database::{Database, SKU, fence, request};

async fn fresh(sink: &PgSink, fence: &Fence, id: &str) -> PassedTx {
    let opened = TransactionalSink::open(sink, fence, Some(&request(id))).await;
    match opened.expect("a transaction") {
        Opened::Fresh(tx) => tx,
        Opened::Replayed(answer) => panic!("replayed {answer:?}"),
    }
}

async fn sell(tx: &PassedTx) -> Answer {
    let sell = "UPDATE stock SET count = count - 1 WHERE sku = $1 RETURNING count";
    let left: i64 = tx.query_one(sell, &[&SKU]).await.expect("a sale").get(0);
    Answer::of(&left).expect("an answer")
}

#[tokio::test]
async fn a_travelled_fence_begins_a_transaction_and_its_answer_is_kept() {
    let database = Database::new().await;
    let shown = serde_json::to_string(&fence(33)).expect("text");
    let shown: Fence = serde_json::from_str(&shown).expect("a fence");
    let tx = fresh(&database.sink, &shown, "r1").await;
    let left = sell(&tx).await;
    let applied = database.sink.commit(tx, left.clone()).await;
    assert_eq!(applied.expect("a commit"), Outcome::Applied(left.clone()));
    let again = TransactionalSink::open(&database.sink, &fence(34), Some(&request("r1"))).await;
    assert!(
        matches!(&again, Ok(Opened::Replayed(answer)) if *answer == left),
        "{again:?}"
    );
    assert_eq!(database.count().await, 99);
}

#[tokio::test]
async fn it_holds_off_newer_claims_and_is_refused_after_them() {
    let database = Database::new().await;
    let tx = fresh(&database.sink, &fence(33), "r1").await;
    let left = sell(&tx).await;
    let newer = fence(34);
    let (claimed, committed) = tokio::join!(database.sink.claim(&newer), async {
        database.wait_until_somebody_waits().await;
        database.sink.commit(tx, left).await
    });
    claimed.expect("a claim");
    committed.expect("a commit");
    let stale = TransactionalSink::open(&database.sink, &fence(33), None).await;
    assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
    drop(fresh(&database.sink, &newer, "r3").await);
    assert_eq!(database.count().await, 99);
}
