//! How often a fenced transaction waits for the network.

use std::time::{Duration, Instant};

use fenced::postgres::{Begin, PgFenced, PgSink, PgTx};
use fenced::{Fate, FencingSink, SinkError};
use fenced_tests::{Proxy, Way};

use crate::database::{Database, fence, request};
use crate::holder::holder;

const DELAY: Duration = Duration::from_millis(100);

/// The fewest round trips that any of a few tries took: a busy machine only adds to them.
async fn round_trips(attempt: impl AsyncFn(i64)) -> u128 {
    let mut fewest = u128::MAX;
    for number in 0..5 {
        let started = Instant::now();
        attempt(number).await;
        fewest = fewest.min(started.elapsed().as_millis() / DELAY.as_millis());
    }
    fewest
}

/// A sink whose replies come late, with a single connection on which all was prepared before.
async fn distant(database: &Database) -> (Proxy, PgSink) {
    let (proxy, sink) = database.behind_a_proxy();
    holder(1, async |guard| {
        let stock = guard.fence(&sink);
        let begun = stock.begin(request("warm-up")).await;
        let Ok(Begin::Fresh(tx)) = begun else {
            panic!("{begun:?}");
        };
        tx.commit(0).await.expect("a commit");
        let tx = stock.enter().await.expect("a transaction");
        tx.commit().await.expect("a commit");
    })
    .await;
    proxy.delay(Way::ToClient, DELAY);
    (proxy, sink)
}

/// Begins, by turns claiming and entering a fence that was claimed before, and commits.
async fn begin_and_commit(sink: &PgSink, token: i64, id: &str, claimed: bool) {
    holder(token, async |guard| {
        let stock = guard.fence(sink);
        if claimed {
            stock.mark_claimed();
        }
        let begun = stock.begin(request(id)).await;
        let Ok(Begin::Fresh(tx)) = begun else {
            panic!("{begun:?}");
        };
        tx.commit(0).await.expect("a commit");
    })
    .await;
}

#[tokio::test]
async fn a_transaction_takes_one_round_trip_to_begin_and_one_to_commit() {
    let database = Database::new().await;
    let (_proxy, sink) = distant(&database).await;
    let claiming = round_trips(async |number| {
        begin_and_commit(&sink, 10 + number, &format!("claiming-{number}"), false).await;
    });
    assert_eq!(claiming.await, 2);
    database.sink.claim(&fence(20)).await.expect("a claim");
    let entering = round_trips(async |number| {
        begin_and_commit(&sink, 20, &format!("entering-{number}"), true).await;
    });
    assert_eq!(entering.await, 2);
}

#[tokio::test]
async fn an_unnamed_transaction_takes_no_more() {
    let database = Database::new().await;
    let (_proxy, sink) = distant(&database).await;
    let unnamed = round_trips(async |number| {
        holder(10 + number, async |guard| {
            let tx = guard.fence(&sink).enter().await.expect("a transaction");
            tx.commit().await.expect("a commit");
        })
        .await;
    });
    assert_eq!(unnamed.await, 2);
}

#[tokio::test]
async fn a_savepoint_takes_none() {
    let database = Database::new().await;
    let (_proxy, sink) = distant(&database).await;
    let savepoint = round_trips(async |number| {
        holder(10 + number, async |guard| {
            let tx = guard.fence(&sink).enter().await.expect("a transaction");
            let nothing = tx.savepoint(async |_: &PgTx| Ok::<_, SinkError>(())).await;
            nothing.expect("nothing");
            tx.commit().await.expect("a commit");
        })
        .await;
    });
    assert_eq!(savepoint.await, 2);
}

#[tokio::test]
async fn a_replay_a_stale_begin_a_claim_and_an_outcome_take_one_round_trip() {
    let database = Database::new().await;
    let (_proxy, sink) = distant(&database).await;
    let replay = round_trips(async |number| {
        holder(1 + number, async |guard| {
            let begun = guard.fence(&sink).begin::<i32>(request("warm-up")).await;
            assert!(matches!(begun, Ok(Begin::Replayed(0))), "{begun:?}");
        })
        .await;
    });
    assert_eq!(replay.await, 1);
    let claim = round_trips(async |number| {
        sink.claim(&fence(20 + number)).await.expect("a claim");
    });
    assert_eq!(claim.await, 1);
    let stale = round_trips(async |_| {
        holder(2, async |guard| {
            let begun = guard.fence(&sink).begin::<i32>(request("stale")).await;
            assert!(matches!(begun, Err(SinkError::Stale { .. })), "{begun:?}");
        })
        .await;
    });
    assert_eq!(stale.await, 1);
    let outcome = round_trips(async |_| {
        let fate = sink.outcome(&request("none")).await;
        assert!(matches!(fate, Ok(Fate::Unknown)), "{fate:?}");
    });
    assert_eq!(outcome.await, 1);
}
