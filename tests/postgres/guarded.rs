//! Tables that refuse what was not fenced.

use fenced::FencingSink;
use fenced::postgres::{enter, guard_table};
use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;

use crate::database::{Database, SKU, add, fence, request};

const UNFENCED: &str = "ZF004";

async fn guarded() -> Database {
    let database = Database::new().await;
    let session = database.session().await;
    for expression in ["'never'", "sku"] {
        let guarded = guard_table(&session.client, "stock", expression).await;
        guarded.expect("a guard");
    }
    database
}

async fn refused(client: &impl GenericClient, sql: &str) {
    let error = client.batch_execute(sql).await.expect_err(sql);
    assert_eq!(
        error.code().map(SqlState::code),
        Some(UNFENCED),
        "{sql}: {error}"
    );
}

#[tokio::test]
async fn a_write_without_a_fence_is_refused() {
    let database = guarded().await;
    let session = database.session().await;
    for sql in [
        "UPDATE stock SET count = 1",
        "DELETE FROM stock",
        "INSERT INTO stock VALUES ('x', 1)",
        "TRUNCATE stock",
    ] {
        refused(&session.client, sql).await;
    }
    assert_eq!(database.count().await, 100);
}

#[tokio::test]
async fn a_row_that_names_no_resource_is_refused_also_after_two_entries() {
    let database = guarded().await;
    let mut session = database.session().await;
    let tx = session.client.transaction().await.expect("a transaction");
    let other = fenced::Fence::new("/locks/inventory/4712", fence(33).token);
    enter(&tx, &fence(33)).await.expect("the fence");
    enter(&tx, &other).await.expect("the other fence");
    refused(&tx, "INSERT INTO stock VALUES ('', 1)").await;
}

/// G1, G4: what one transaction entered is nothing to the next, another resource, or one whose
/// savepoint was rolled back.
#[tokio::test]
async fn only_the_entered_resource_is_writable_and_only_in_that_transaction() {
    let database = guarded().await;
    let mut session = database.session().await;
    let sell = "UPDATE stock SET count = count - 1 WHERE sku = '/locks/inventory/4711'";
    let tx = session.client.transaction().await.expect("a transaction");
    enter(&tx, &fence(33)).await.expect("the fence");
    tx.batch_execute(sell).await.expect("a sale");
    tx.commit().await.expect("a commit");
    refused(&session.client, sell).await;
    for sql in [
        "INSERT INTO stock VALUES ('/locks/inventory/47', 1)",
        "INSERT INTO stock VALUES ('', 1)",
        "UPDATE stock SET sku = 'elsewhere' WHERE sku = '/locks/inventory/4711'",
        "TRUNCATE stock",
    ] {
        let tx = session.client.transaction().await.expect("a transaction");
        enter(&tx, &fence(33).claimed(true))
            .await
            .expect("the fence");
        refused(&tx, sql).await;
    }
    let mut tx = session.client.transaction().await.expect("a transaction");
    let savepoint = tx.transaction().await.expect("a savepoint");
    let _refused = enter(&savepoint, &fence(33)).await;
    savepoint.rollback().await.expect("a rollback");
    refused(&tx, sell).await;
    drop(tx);
    assert_eq!(database.count().await, 99);
}

#[tokio::test]
async fn the_sink_writes_guarded_tables() {
    let database = guarded().await;
    let write = add(SKU, 5);
    let written = database.sink.write(&fence(33), &request("r1"), write).await;
    assert_eq!(written.expect("a write").into_answer().as_json(), "[1]");
    assert_eq!(database.count().await, 105);
}
