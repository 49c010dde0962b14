//! Transactions that the user began.

use std::time::Duration;

use fenced::postgres::{PgFenced, claim, enter};
use fenced::{FencingSink, SinkError};
use tokio_postgres::IsolationLevel;

use crate::database::{Database, SKU, fence};
use crate::holder::holder;

const SELL: &str = "UPDATE stock SET count = count - 1 WHERE sku = $1";

#[tokio::test]
async fn a_transaction_enters_and_holds_the_fence() {
    let database = Database::new().await;
    let mut session = database.session().await;
    claim(&session.client, &fence(33)).await.expect("a claim");
    let impatient = database
        .sink
        .clone()
        .lock_timeout(Duration::from_millis(50));
    for claimed in [true, false] {
        let tx = session.client.transaction().await.expect("a transaction");
        enter(&tx, &fence(33).claimed(claimed))
            .await
            .expect("the fence");
        tx.execute(SELL, &[&SKU]).await.expect("a sale");
        let busy = impatient.claim(&fence(34)).await;
        assert!(matches!(busy, Err(SinkError::Busy { .. })), "{busy:?}");
        tx.commit().await.expect("a commit");
    }
    assert_eq!(database.count().await, 98);
}

#[tokio::test]
async fn a_section_enters_a_transaction_of_the_user() {
    let database = Database::new().await;
    let mut session = database.session().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        let tx = session.client.transaction().await.expect("a transaction");
        stock.enter_own(&tx).await.expect("the fence");
        tx.commit().await.expect("a commit");
        stock.mark_claimed();
        database.sink.claim(&fence(34)).await.expect("a claim");
        let tx = session.client.transaction().await.expect("a transaction");
        let stale = stock.enter_own(&tx).await;
        assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
        let lost = stock.enter_own(&tx).await;
        assert!(matches!(lost, Err(SinkError::Lost(_))), "{lost:?}");
    })
    .await;
}

#[tokio::test]
async fn a_transaction_that_has_written_is_refused() {
    let database = Database::new().await;
    let mut session = database.session().await;
    let tx = session.client.transaction().await.expect("a transaction");
    tx.execute(SELL, &[&SKU]).await.expect("a sale");
    let refused = enter(&tx, &fence(33)).await.expect_err("too late");
    assert!(refused.to_string().contains("enter first"), "{refused}");
    drop(tx);
    assert_eq!(database.count().await, 100);
}

/// X3: rolled back to the savepoint, the transaction would live on without the fence.
#[tokio::test]
async fn a_savepoint_of_the_user_is_refused() {
    let database = Database::new().await;
    let mut session = database.session().await;
    database.sink.claim(&fence(33)).await.expect("a claim");
    for entering in [fence(33).claimed(true), fence(33), fence(34)] {
        let mut tx = session.client.transaction().await.expect("a transaction");
        let savepoint = tx.transaction().await.expect("a savepoint");
        let refused = enter(&savepoint, &entering).await.expect_err("a savepoint");
        assert!(refused.to_string().contains("savepoint"), "{refused}");
    }
}

#[tokio::test]
async fn a_savepoint_after_the_fence_does_not_release_it() {
    let database = Database::new().await;
    let mut session = database.session().await;
    let impatient = database
        .sink
        .clone()
        .lock_timeout(Duration::from_millis(50));
    for claimed in [false, true] {
        let mut tx = session.client.transaction().await.expect("a transaction");
        let entered = enter(&tx, &fence(33).claimed(claimed)).await;
        entered.expect("a first statement");
        let savepoint = tx.transaction().await.expect("a savepoint");
        savepoint.execute(SELL, &[&SKU]).await.expect("a sale");
        savepoint.rollback().await.expect("a rollback");
        let busy = impatient.claim(&fence(34)).await;
        assert!(matches!(busy, Err(SinkError::Busy { .. })), "{busy:?}");
        tx.commit().await.expect("a commit");
    }
    assert_eq!(database.count().await, 100);
}

#[tokio::test]
async fn a_fence_that_nobody_claimed_is_not_entered() {
    let database = Database::new().await;
    let mut session = database.session().await;
    for raise in [None, Some(32)] {
        if let Some(token) = raise {
            database.sink.claim(&fence(token)).await.expect("a claim");
        }
        let tx = session.client.transaction().await.expect("a transaction");
        let missing = enter(&tx, &fence(33).claimed(true)).await;
        assert!(
            matches!(missing, Err(SinkError::NotClaimed { .. })),
            "{missing:?}"
        );
    }
}

/// AD2: an old snapshot does not hide a newer claim.
#[tokio::test]
async fn an_old_snapshot_is_refused() {
    let database = Database::new().await;
    let mut session = database.session().await;
    database.sink.claim(&fence(33)).await.expect("a claim");
    for level in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        for claimed in [true, false] {
            let tx = session.client.build_transaction().isolation_level(level);
            let tx = tx.start().await.expect("a transaction");
            tx.query("SELECT 1 FROM stock", &[])
                .await
                .expect("a snapshot");
            database.sink.claim(&fence(34)).await.expect("a claim");
            let refused = enter(&tx, &fence(33).claimed(claimed)).await;
            assert!(
                matches!(refused, Err(SinkError::Retry(_) | SinkError::Stale { .. })),
                "{refused:?}"
            );
            drop(tx);
            let back = "SELECT fenced.reset($1, 33, 'back to the start')";
            session.client.query(back, &[&SKU]).await.expect("a reset");
        }
    }
}

#[tokio::test]
async fn one_transaction_enters_two_resources() {
    let database = Database::new().await;
    let mut session = database.session().await;
    let mut other = fence(7);
    "/locks/inventory/other".clone_into(&mut other.resource);
    let tx = session.client.transaction().await.expect("a transaction");
    enter(&tx, &fence(33)).await.expect("the first fence");
    enter(&tx, &other).await.expect("the second fence");
    tx.execute(SELL, &[&SKU]).await.expect("a sale");
    tx.commit().await.expect("a commit");
    other.token = crate::database::token(6);
    database.sink.claim(&other).await.expect_err("stale");
}

/// Readers do not fence each other; a writer fences older readers, and a reader older writers.
#[tokio::test]
async fn shared_holders_and_writers() {
    let database = Database::new().await;
    let reader = |token| {
        let mut fence = fence(token);
        fence.mode = fenced::Mode::Shared;
        fence
    };
    let sink = &database.sink;
    sink.claim(&reader(10)).await.expect("a reader");
    sink.claim(&reader(12)).await.expect("a newer reader");
    sink.claim(&reader(11)).await.expect("an older reader");
    let stale = |result| match result {
        Err(SinkError::Stale { current, .. }) => current.get(),
        other => panic!("{other:?}"),
    };
    assert_eq!(stale(sink.claim(&fence(11)).await), 12);
    sink.claim(&fence(20)).await.expect("a writer");
    assert_eq!(stale(sink.claim(&reader(12)).await), 20);
    sink.claim(&reader(30)).await.expect("a reader");
    assert_eq!(stale(sink.claim(&fence(20)).await), 30);
    let mut session = database.session().await;
    let tx = session.client.transaction().await.expect("a transaction");
    enter(&tx, &reader(25).claimed(true))
        .await
        .expect("a reader");
    let mut second = database.session().await;
    let beside = second.client.transaction().await.expect("a transaction");
    enter(&beside, &reader(30).claimed(true))
        .await
        .expect("a reader beside it");
}
