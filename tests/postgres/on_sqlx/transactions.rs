use std::time::Duration;

use fenced::postgres::sqlx::{SqlxFenced, SqlxTx};
use fenced::postgres::{Begin, PgSink};
use fenced::{FencingSink, Outcome, Request, SinkError, Statement};
use sqlx::{Connection as _, Executor as _, PgPool};

use super::{SELL, fresh, sell, sink};
use crate::database::{Database, SKU, fence, request};
use crate::holder::holder;

#[tokio::test]
async fn a_request_is_applied_once_and_replayed_to_anyone() {
    let database = Database::new().await;
    let sink = sink(&database).await;
    // Nothing of it is ever read as SQL.
    let hostile = "r'); DROP TABLE stock; --\\ \u{1f4a3}";
    for token in [33, 34] {
        holder(token, async |guard| {
            let stock = guard.fence(&sink);
            let sold = stock.run(request(hostile), async |tx: &mut SqlxTx| {
                sqlx::query(SELL).bind(SKU).execute(&mut **tx).await?;
                Ok::<_, Failure>(["it's", "\\", "\u{e4}"].join("\n"))
            });
            let answer = sold.await.expect("an answer");
            let expected = "it's\n\\\n\u{e4}".to_owned();
            match token {
                33 => assert_eq!(answer, Outcome::Applied(expected)),
                _ => assert_eq!(answer, Outcome::Replayed(expected)),
            }
            let other = stock.begin::<String>(Request::new(hostile, "other")).await;
            assert!(
                matches!(other, Err(SinkError::RequestMismatch { .. })),
                "{other:?}"
            );
        })
        .await;
    }
    assert_eq!(database.count().await, 99);
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::test]
async fn the_first_transaction_claims_and_holds_off_newer_holders() {
    let database = Database::new().await;
    let sink = sink(&database).await;
    let impatient = sink.clone().lock_timeout(Duration::from_millis(50));
    holder(33, async |guard| {
        let stock = guard.fence(&sink);
        for round in 0..2 {
            let mut tx = fresh(stock, &format!("r{round}")).await;
            sell(&mut tx).await;
            let pid = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut **tx);
            let pid: i32 = pid.await.expect("a pid");
            let busy = impatient.claim(&fence(34)).await;
            assert!(
                matches!(&busy, Err(SinkError::Busy { pids, .. }) if *pids == [pid.unsigned_abs()]),
                "{busy:?}, blocked by {pid}"
            );
            tx.commit(round).await.expect("a commit");
            assert!(stock.fence().expect("a lease").claimed);
        }
        sink.claim(&fence(34)).await.expect("a claim");
        let stale = stock.begin::<i64>(request("r2")).await;
        assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
        let lost = stock.enter().await;
        assert!(matches!(lost, Err(SinkError::Lost(_))), "{lost:?}");
    })
    .await;
    assert_eq!(database.count().await, 98);
}

#[tokio::test]
async fn a_twin_gets_the_answer_of_the_first() {
    let database = Database::new().await;
    let sink = sink(&database).await;
    holder(33, async |guard| {
        let stock = guard.fence(&sink);
        stock.claim().await.expect("a claim");
        let (mut one, mut two) = (fresh(stock, "r1").await, fresh(stock, "r1").await);
        sell(&mut one).await;
        let row = "INSERT INTO stock VALUES ('twin', 1)";
        (&mut **two).execute(row).await.expect("an effect");
        assert_eq!(one.commit(1).await.expect("a commit"), Outcome::Applied(1));
        assert_eq!(two.commit(2).await.expect("a replay"), Outcome::Replayed(1));
    })
    .await;
    assert_eq!(database.count().await, 99);
    assert_eq!(database.count_of("twin").await, 0);
}

#[tokio::test]
async fn what_is_begun_inside_is_a_savepoint_that_cannot_release_the_fence() {
    let database = Database::new().await;
    let sink = sink(&database).await;
    let impatient = sink.clone().lock_timeout(Duration::from_millis(50));
    holder(33, async |guard| {
        let mut tx = fresh(guard.fence(&sink), "r1").await;
        let mut inner = tx.begin().await.expect("a savepoint");
        sqlx::query(SELL)
            .bind(SKU)
            .execute(&mut *inner)
            .await
            .expect("a sale");
        inner.rollback().await.expect("a rollback");
        let busy = impatient.claim(&fence(34)).await;
        assert!(matches!(busy, Err(SinkError::Busy { .. })), "{busy:?}");
        let mut inner = tx.begin().await.expect("a savepoint");
        sqlx::query(SELL)
            .bind(SKU)
            .execute(&mut *inner)
            .await
            .expect("a sale");
        inner.commit().await.expect("a commit");
        tx.commit(1).await.expect("a commit");
    })
    .await;
    assert_eq!(database.count().await, 99);
}

#[tokio::test]
async fn a_commit_of_what_is_no_longer_the_transaction_fails() {
    let database = Database::new().await;
    let sink = sink(&database).await;
    for (statement, said) in [
        ("SELECT 1 / 0", "nothing was committed"),
        ("ROLLBACK", "does not hold the fence"),
    ] {
        holder(33, async |guard| {
            let stock = guard.fence(&sink);
            let mut named = fresh(stock, "r1").await;
            sell(&mut named).await;
            let _ignored = (&mut **named).execute(statement).await;
            let error = named.commit(1).await.expect_err("a commit").to_string();
            assert!(error.contains(said), "{error}");
            let mut unnamed = stock.enter().await.expect("a transaction");
            let _ignored = (&mut **unnamed).execute(statement).await;
            let error = unnamed.commit().await.expect_err("a commit").to_string();
            assert!(error.contains(said), "{error}");
        })
        .await;
    }
    assert_eq!(database.count().await, 100);
    assert_eq!(database.open_transactions().await, 0);
}

#[tokio::test]
async fn a_value_that_is_missing_fits_every_type() {
    let database = Database::new().await;
    let sink = sink(&database).await;
    let session = database.session().await;
    session
        .run("CREATE TABLE odd (number int, text text, flag bool, bytes bytea)")
        .await;
    let write = vec![
        Statement::new("INSERT INTO odd VALUES ($1, $2, $3, $4)")
            .bind(None::<i64>)
            .bind(None::<String>)
            .bind(None::<bool>)
            .bind(None::<Vec<u8>>),
        Statement::new("INSERT INTO odd VALUES ($1, $2, $3, $4)")
            .bind(1)
            .bind("one")
            .bind(true)
            .bind(vec![1_u8]),
    ];
    let done = sink.write(&fence(1), &request("r1"), write).await;
    let changed: Vec<u64> = done
        .expect("a write")
        .into_answer()
        .decode()
        .expect("counts");
    assert_eq!(changed, [1, 1]);
}

/// As in a service: the future of a section is spawned.
#[tokio::test]
async fn a_section_with_it_can_be_spawned() {
    let database = Database::new().await;
    let sink = sink(&database).await;
    let selling = tokio::spawn(async move {
        holder(33, async |guard| {
            let mut tx = fresh(guard.fence(&sink), "r1").await;
            sell(&mut tx).await;
            tx.commit(99).await.expect("a commit");
        })
        .await;
    });
    selling.await.expect("a sale");
    assert_eq!(database.count().await, 99);
}

#[tokio::test]
async fn a_begin_without_the_schema_says_what_to_call() {
    let url = fenced_tests::shared::fresh_database().await;
    let bare: PgSink<PgPool> = PgSink::new(super::pool(&url, 2).await);
    holder(33, async |guard| {
        let begun: Result<Begin<_, i64>, _> = guard.fence(&bare).begin(request("r1")).await;
        let error = begun.expect_err("no schema").to_string();
        assert!(error.contains("migrate"), "{error}");
    })
    .await;
}
