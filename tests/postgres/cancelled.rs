//! Futures that are dropped at any moment.

use std::time::Duration;

use fenced::postgres::{Begin, PgFenced, PgSink};
use fenced::testing::cancel_after;
use fenced::{Answer, Fate, FencingSink, Request, SinkError};

use crate::database::{Database, SKU, fence, pool, request};
use crate::holder::holder;

const SELL: &str = "UPDATE stock SET count = count - 1 WHERE sku = $1";

#[tokio::test]
async fn cancelled_begins_leave_no_transaction_open() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        let mut finished = 0;
        for i in 0..200 {
            let begin = stock.begin::<i32>(request(&format!("r{i}")));
            finished += usize::from(cancel_after(i % 8, begin).await.is_ok());
        }
        println!("{finished} of 200 begins were done before they were cancelled");
        // Each connection of the pool answers only after the ROLLBACK that was sent before.
        let mut connections = Vec::new();
        for _ in 0..8 {
            connections.push(database.pool.get().await.expect("a connection"));
        }
        for connection in &connections {
            connection
                .batch_execute("SELECT 1")
                .await
                .expect("an answer");
        }
        drop(connections);
        assert_eq!(database.open_transactions().await, 0);
    })
    .await;
    database
        .sink
        .claim(&fence(34))
        .await
        .expect("nobody is in the way");
}

#[tokio::test]
async fn a_dropped_transaction_is_rolled_back_before_the_next_statement() {
    let database = Database::new().await;
    let single = PgSink::new(pool(&database.url, 1));
    holder(33, async |guard| {
        let stock = guard.fence(&single);
        for i in 0..50 {
            let begun = stock.begin::<i32>(request(&format!("r{i}"))).await;
            let Ok(Begin::Fresh(tx)) = begun else {
                panic!("{begun:?}");
            };
            tx.execute(SELL, &[&SKU]).await.expect("a sale");
            drop(tx);
            assert!(matches!(
                single.outcome(&request("none")).await,
                Ok(Fate::Unknown)
            ));
        }
    })
    .await;
    assert_eq!(database.count().await, 100);
}

/// Where the future was dropped, only the database knows; `outcome` tells, and once a newer holder
/// has claimed it is certain.
#[tokio::test]
async fn a_dropped_commit_happens_wholly_or_not_at_all() {
    let database = Database::new().await;
    let (mut applied, mut absent) = (0, 0);
    for i in 0..100 {
        let (older, newer) = (2 * i + 1, 2 * i + 2);
        let sent = request(&format!("r{i}")).sent_under(fence(older));
        holder(older, async |guard| {
            let begun = guard.fence(&database.sink).begin::<i64>(sent.clone()).await;
            let Ok(Begin::Fresh(tx)) = begun else {
                panic!("{begun:?}");
            };
            tx.execute(SELL, &[&SKU]).await.expect("a sale");
            let polls = usize::try_from(i % 3).expect("a few");
            let _dropped = cancel_after(polls, tx.commit(i)).await;
        })
        .await;
        database.sink.claim(&fence(newer)).await.expect("a claim");
        match database.sink.outcome(&sent).await.expect("a fate") {
            Fate::Applied(answer) => {
                assert_eq!(answer.decode::<i64>().expect("an answer"), i);
                applied += 1;
            }
            Fate::Absent => absent += 1,
            Fate::Unknown => panic!("unknown although a newer holder has claimed"),
        }
        assert_eq!(database.count().await, 100 - applied);
    }
    // Never polled: never sent. Polled once: sent.
    assert!(
        absent >= 34 && applied >= 66,
        "{applied} applied, {absent} absent"
    );
}

#[tokio::test]
async fn a_connection_lost_in_commit_is_ambiguous() {
    let database = Database::new().await;
    let session = database.session().await;
    // Lets COMMIT wait, so that its backend can be killed meanwhile.
    session
        .run(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$; \
             CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON stock DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION slow(); SELECT pg_advisory_lock(1)",
        )
        .await;
    let sent = request("r1").sent_under(fence(33));
    holder(33, async |guard| {
        let begun = guard.fence(&database.sink).begin::<i64>(sent.clone()).await;
        let Ok(Begin::Fresh(tx)) = begun else {
            panic!("{begun:?}");
        };
        tx.execute(SELL, &[&SKU]).await.expect("a sale");
        let killing = async {
            database.wait_until_somebody_waits().await;
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
            session.run(kill).await;
        };
        let (committed, ()) = tokio::join!(tx.commit(99), killing);
        assert!(
            matches!(&committed, Err(SinkError::Ambiguous { request: Some(id) }) if id == "r1"),
            "{committed:?}"
        );
    })
    .await;
    assert_eq!(ask(&database, &sent).await, Fate::Unknown);
    while let Err(error) = database.sink.claim(&fence(34)).await {
        assert!(error.is_retryable(), "{error}");
    }
    assert_eq!(ask(&database, &sent).await, Fate::Absent);
    assert_eq!(database.count().await, 100);
}

/// The pool may not have noticed yet that one of its connections is gone.
async fn ask(database: &Database, request: &Request) -> Fate<Answer> {
    loop {
        match database.sink.outcome(request).await {
            Err(error) => assert!(error.is_retryable(), "{error}"),
            Ok(fate) => return fate,
        }
    }
}

#[tokio::test]
async fn a_connection_lost_before_the_commit_changes_nothing() {
    let database = Database::new().await;
    let session = database.session().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        let Ok(Begin::Fresh(tx)) = stock.begin::<i64>(request("r1")).await else {
            panic!("no transaction");
        };
        tx.execute(SELL, &[&SKU]).await.expect("a sale");
        let pid = tx.query_one("SELECT pg_backend_pid()", &[]).await;
        let pid: i32 = pid.expect("a pid").get(0);
        let kill = "SELECT pg_terminate_backend($1)";
        session.client.query(kill, &[&pid]).await.expect("a kill");
        while !tx.is_closed() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let failed = tx.commit(99).await.expect_err("a commit");
        assert!(matches!(failed, SinkError::Retry(_)), "{failed}");
        let again = stock.begin::<i64>(request("r1")).await;
        assert!(matches!(again, Ok(Begin::Fresh(_))), "{again:?}");
    })
    .await;
    assert_eq!(database.count().await, 100);
}
