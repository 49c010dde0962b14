//! The schema comes once, whoever brings it.

use fenced::FencingSink;
use fenced::postgres::{PgSink, migrate, schema};
use fenced_tests::shared::fresh_database;

use crate::database::{Session, fence, pool};

#[tokio::test]
async fn several_processes_migrate_at_once_and_again() {
    let url = fresh_database().await;
    let mut migrating = Vec::new();
    for _ in 0..8 {
        let session = Session::open(&url).await;
        migrating.push(tokio::spawn(async move {
            migrate(&session.client).await.expect("a migration");
            migrate(&session.client).await.expect("nothing to do");
        }));
    }
    for one in migrating {
        one.await.expect("a task");
    }
    let sink = PgSink::new(pool(&url, 2));
    sink.claim(&fence(33)).await.expect("a claim");
    let session = Session::open(&url).await;
    migrate(&session.client).await.expect("nothing to do");
    let newest = "SELECT count(*), max(version) FROM fenced.version";
    let row = session.client.query_one(newest, &[]).await.expect("a row");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i32>(1)), (1, 1));
    sink.claim(&fence(32))
        .await
        .expect_err("the fence is still there");
}

#[tokio::test]
async fn the_printed_schema_is_what_a_migration_makes() {
    let url = fresh_database().await;
    let session = Session::open(&url).await;
    session.run(&schema()).await;
    migrate(&session.client).await.expect("nothing to do");
    session
        .client
        .batch_execute(&schema())
        .await
        .expect_err("it was applied");
    let sink = PgSink::new(pool(&url, 2));
    sink.claim(&fence(33)).await.expect("a claim");
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    let url = fresh_database().await;
    let session = Session::open(&url).await;
    migrate(&session.client).await.expect("a migration");
    session
        .run("INSERT INTO fenced.version (version) VALUES (1000)")
        .await;
    migrate(&session.client).await.expect("nothing to do");
}

#[tokio::test]
async fn a_missing_schema_is_named() {
    let url = fresh_database().await;
    let sink = PgSink::new(pool(&url, 2));
    let request = crate::database::request("r1");
    for error in [
        sink.claim(&fence(33)).await.expect_err("no schema"),
        sink.write(&fence(33), &request, Vec::new())
            .await
            .expect_err("no schema"),
        sink.outcome(&request).await.expect_err("no schema"),
    ] {
        assert!(error.to_string().contains("migrate"), "{error}");
    }
}
