//! COMMIT of a transaction that is no longer what it was must never look like success.

use fenced::SinkError;
use fenced::postgres::{Begin, PgFenced, PgTx};

use crate::database::{Database, SKU, request};
use crate::holder::holder;

const SELL: &str = "UPDATE stock SET count = count - 1";

/// Commits after `statements`, of which the results are ignored, and expects a failure.
async fn refused(statements: &[&str]) -> (Database, SinkError, SinkError) {
    let database = Database::new().await;
    let ignore = async |tx: &PgTx| {
        for statement in statements {
            let _ignored = tx.batch_execute(statement).await;
        }
    };
    let errors = holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        let Ok(Begin::Fresh(tx)) = stock.begin(request("r1")).await else {
            panic!("no transaction");
        };
        ignore(&tx).await;
        let named = tx.commit(1).await.expect_err("a commit");
        let tx = stock.enter().await.expect("a transaction");
        ignore(&tx).await;
        let unnamed = tx.commit().await.expect_err("a commit");
        assert!(!stock.fence().expect("a lease").claimed);
        (named, unnamed)
    })
    .await;
    assert_eq!(database.open_transactions().await, 0);
    (database, errors.0, errors.1)
}

#[tokio::test]
async fn a_failed_statement_that_was_ignored_fails_the_commit() {
    let (database, named, unnamed) = refused(&[SELL, "SELECT 1 / 0"]).await;
    assert!(
        named.to_string().contains("nothing was committed"),
        "{named}"
    );
    assert!(
        unnamed.to_string().contains("nothing was committed"),
        "{unnamed}"
    );
    assert_eq!(database.count().await, 100);
}

#[tokio::test]
async fn a_transaction_that_was_rolled_back_by_hand_has_no_fence() {
    let (database, named, unnamed) = refused(&[SELL, "ROLLBACK"]).await;
    assert!(
        named.to_string().contains("does not hold the fence"),
        "{named}"
    );
    assert!(
        unnamed.to_string().contains("does not hold the fence"),
        "{unnamed}"
    );
    assert_eq!(database.count().await, 100);
}

#[tokio::test]
async fn a_new_transaction_begun_by_hand_has_no_fence() {
    let (database, named, unnamed) = refused(&["ROLLBACK", "BEGIN", SELL]).await;
    assert!(
        named.to_string().contains("does not hold the fence"),
        "{named}"
    );
    assert!(
        unnamed.to_string().contains("does not hold the fence"),
        "{unnamed}"
    );
    assert_eq!(database.count().await, 100);
}

#[tokio::test]
async fn a_constraint_that_fails_at_commit_fails_the_commit() {
    let database = Database::new().await;
    let session = database.session().await;
    session
        .run("CREATE TABLE one (id int CONSTRAINT one_id UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        .await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        let Ok(Begin::Fresh(tx)) = stock.begin(request("r1")).await else {
            panic!("no transaction");
        };
        tx.batch_execute("INSERT INTO one VALUES (1), (1)")
            .await
            .expect("for now");
        let error = tx.commit(1).await.expect_err("a commit");
        assert!(matches!(error, SinkError::Backend(_)), "{error}");
        let again = stock.begin::<i32>(request("r1")).await;
        assert!(matches!(again, Ok(Begin::Fresh(_))), "{again:?}");
    })
    .await;
}

#[tokio::test]
async fn a_row_of_the_users_that_is_no_twin_is_no_replay() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        let Ok(Begin::Fresh(tx)) = stock.begin(request("r1")).await else {
            panic!("no transaction");
        };
        let row = "INSERT INTO stock VALUES ($1, 1)";
        let error = tx.execute(row, &[&SKU]).await.expect_err("a duplicate");
        assert_eq!(error.code().expect("a code").code(), "23505");
        let error = tx.commit(1).await.expect_err("a commit");
        assert!(matches!(error, SinkError::Backend(_)), "{error}");
    })
    .await;
}
