//! Fences that came from elsewhere, whose lease nobody here can watch.

use fenced::postgres::{Begin, FencedTx, PgSink};
use fenced::{Fence, FencingSink, Outcome, SinkError};

use crate::database::{Database, SKU, fence, request};

async fn fresh(sink: &PgSink, fence: &Fence, id: &str) -> FencedTx<'static, i64> {
    match sink
        .begin(fence, &request(id))
        .await
        .expect("a transaction")
    {
        Begin::Fresh(tx) => tx,
        Begin::Replayed(answer) => panic!("replayed {answer}"),
    }
}

async fn sell(tx: &FencedTx<'_, i64>) -> i64 {
    let sell = "UPDATE stock SET count = count - 1 WHERE sku = $1 RETURNING count";
    tx.query_one(sell, &[&SKU]).await.expect("a sale").get(0)
}

#[tokio::test]
async fn a_travelled_fence_begins_a_transaction_and_its_answer_is_kept() {
    let database = Database::new().await;
    let shown = serde_json::to_string(&fence(33)).expect("text");
    let shown: Fence = serde_json::from_str(&shown).expect("a fence");
    let tx = fresh(&database.sink, &shown, "r1").await;
    let left = sell(&tx).await;
    let applied = tx.commit(left).await.expect("a commit");
    assert_eq!(applied, Outcome::Applied(99));
    let begun = database.sink.begin::<i64>(&fence(34), &request("r1")).await;
    assert!(matches!(begun, Ok(Begin::Replayed(99))), "{begun:?}");
    assert_eq!(database.count().await, 99);
}

#[tokio::test]
async fn it_holds_off_newer_claims_and_is_refused_after_them() {
    let database = Database::new().await;
    let tx = fresh(&database.sink, &fence(33), "r1").await;
    sell(&tx).await;
    let newer = fence(34);
    let (claimed, committed) = tokio::join!(database.sink.claim(&newer), async {
        database.wait_until_somebody_waits().await;
        tx.commit(99).await
    });
    claimed.expect("a claim");
    committed.expect("a commit");
    let stale = database.sink.begin::<i64>(&fence(33), &request("r2")).await;
    assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
    drop(fresh(&database.sink, &newer, "r3").await);
    assert_eq!(database.count().await, 99);
}
