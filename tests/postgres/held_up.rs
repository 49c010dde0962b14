//! An older holder's transaction that stays open holds up the newer one, for a bounded time.

use std::time::{Duration, Instant};

use fenced::postgres::{Begin, PgFenced};
use fenced::{FencingSink, SinkError};

use crate::database::{Database, SKU, fence, request};
use crate::holder::holder;

const SELL: &str = "UPDATE stock SET count = count - 1 WHERE sku = $1";

#[tokio::test]
async fn a_stalled_transaction_is_named_and_then_ended_by_the_server() {
    let database = Database::new().await;
    let stalling = database
        .sink
        .clone()
        .idle_in_transaction_timeout(Duration::from_secs(4));
    let claiming = database
        .sink
        .clone()
        .lock_timeout(Duration::from_millis(300));
    holder(33, async |old| {
        let begun = old.fence(&stalling).begin::<i64>(request("old")).await;
        let Ok(Begin::Fresh(tx)) = begun else {
            panic!("{begun:?}");
        };
        tx.execute(SELL, &[&SKU]).await.expect("a sale");
        let pid: i32 = tx
            .query_one("SELECT pg_backend_pid()", &[])
            .await
            .expect("a pid")
            .get(0);
        let stalled = Instant::now();
        holder(34, async |new| {
            let stock = new.fence(&claiming);
            for attempt in [
                stock.claim().await,
                stock.begin::<i64>(request("new")).await.map(drop),
            ] {
                match attempt {
                    Err(SinkError::Busy { resource, pids }) => {
                        assert_eq!((resource.as_str(), pids), (SKU, vec![pid.unsigned_abs()]));
                    }
                    other => panic!("{other:?}"),
                }
            }
            while let Err(error) = stock.claim().await {
                assert!(error.is_retryable(), "{error}");
                assert!(stalled.elapsed() < Duration::from_mins(1), "never ended");
            }
        })
        .await;
        assert!(
            stalled.elapsed() > Duration::from_secs(3),
            "ended too early"
        );
        let late = tx.commit(99).await;
        late.expect_err("the server has ended it");
    })
    .await;
    assert_eq!(database.count().await, 100);
}

#[tokio::test]
async fn the_first_transaction_of_a_resource_is_named_too() {
    let database = Database::new().await;
    let claiming = database
        .sink
        .clone()
        .lock_timeout(Duration::from_millis(100));
    holder(33, async |old| {
        let tx = old
            .fence(&database.sink)
            .enter()
            .await
            .expect("a transaction");
        let busy = claiming.claim(&fence(34)).await;
        assert!(
            matches!(&busy, Err(SinkError::Busy { pids, .. }) if pids.len() == 1),
            "{busy:?}"
        );
        tx.commit().await.expect("a commit");
    })
    .await;
}

/// X2: a newer holder's operator may end the blocker at once.
#[tokio::test]
async fn a_terminated_blocker_loses_its_writes() {
    let database = Database::new().await;
    let session = database.session().await;
    holder(33, async |old| {
        let begun = old.fence(&database.sink).begin::<i64>(request("old")).await;
        let Ok(Begin::Fresh(tx)) = begun else {
            panic!("{begun:?}");
        };
        tx.execute(SELL, &[&SKU]).await.expect("a sale");
        let impatient = database
            .sink
            .clone()
            .lock_timeout(Duration::from_millis(50));
        let busy = impatient.claim(&fence(34)).await;
        let Err(SinkError::Busy { pids, .. }) = busy else {
            panic!("{busy:?}");
        };
        for pid in pids {
            let kill = format!("SELECT pg_terminate_backend({pid})");
            session.run(&kill).await;
        }
        database.sink.claim(&fence(34)).await.expect("a claim");
        tx.commit(99).await.expect_err("its session is gone");
    })
    .await;
    assert_eq!(database.count().await, 100);
}

#[tokio::test]
async fn a_small_pool_still_tells_that_it_is_busy() {
    let database = Database::new().await;
    let session = database.session().await;
    session
        .run("BEGIN; INSERT INTO fenced.fence (resource, token) VALUES ('/locks/inventory/4711', 33)")
        .await;
    let small = fenced::postgres::PgSink::new(crate::database::pool(&database.url, 1));
    let busy = small
        .lock_timeout(Duration::from_millis(50))
        .claim(&fence(34))
        .await;
    assert!(matches!(busy, Err(SinkError::Busy { .. })), "{busy:?}");
    session.run("ROLLBACK").await;
}
