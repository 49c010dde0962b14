use fenced::postgres::PgSink;
use fenced::postgres::sqlx::{SqlxFenced, claim, enter, migrate};
use fenced::{FencingSink, SinkError};
use fenced_tests::shared::fresh_database;

use super::{SELL, pool, sink};
use crate::database::{Database, SKU, fence};
use crate::holder::holder;

#[tokio::test]
async fn a_transaction_of_the_users_enters() {
    let database = Database::new().await;
    let sink = sink(&database).await;
    let pool = pool(&database.url, 2).await;
    claim(&mut pool.acquire().await.expect("a connection"), &fence(33))
        .await
        .expect("a claim");
    let mut tx = pool.begin().await.expect("a transaction");
    enter(&mut tx, &fence(33).claimed(true))
        .await
        .expect("the fence");
    sqlx::query(SELL)
        .bind(SKU)
        .execute(&mut *tx)
        .await
        .expect("a sale");
    tx.commit().await.expect("a commit");
    holder(34, async |guard| {
        let stock = guard.fence(&sink);
        let mut tx = pool.begin().await.expect("a transaction");
        stock.enter_own(&mut tx).await.expect("the fence");
        tx.commit().await.expect("a commit");
        stock.mark_claimed();
    })
    .await;
    let mut tx = pool.begin().await.expect("a transaction");
    let stale = enter(&mut tx, &fence(33)).await;
    assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
    assert_eq!(database.count().await, 99);
}

#[tokio::test]
async fn a_transaction_that_has_written_or_a_savepoint_is_refused() {
    let database = Database::new().await;
    let pool = pool(&database.url, 2).await;
    let mut tx = pool.begin().await.expect("a transaction");
    sqlx::query(SELL)
        .bind(SKU)
        .execute(&mut *tx)
        .await
        .expect("a sale");
    let written = enter(&mut tx, &fence(33))
        .await
        .expect_err("it has written");
    assert!(written.to_string().contains("enter first"), "{written}");
    tx.rollback().await.expect("a rollback");
    let mut tx = pool.begin().await.expect("a transaction");
    let mut savepoint = sqlx::Connection::begin(&mut *tx)
        .await
        .expect("a savepoint");
    let inside = enter(&mut savepoint, &fence(33))
        .await
        .expect_err("a savepoint");
    assert!(inside.to_string().contains("savepoint"), "{inside}");
}

#[tokio::test]
async fn several_processes_migrate_at_once() {
    let url = fresh_database().await;
    let pool = pool(&url, 4).await;
    let migrating = (0..4).map(async |_| {
        let mut connection = pool.acquire().await.expect("a connection");
        migrate(&mut connection).await
    });
    for done in futures::future::join_all(migrating).await {
        done.expect("a migration");
    }
    PgSink::new(pool).claim(&fence(1)).await.expect("a claim");
}
