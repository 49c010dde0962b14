use std::time::{Duration, Instant};

use fenced::postgres::PgSink;
use fenced::postgres::sqlx::SqlxFenced;
use fenced::testing::cancel_after;
use fenced::{Fate, FencingSink, SinkError};
use fenced_tests::Way;

use super::{fresh, pool, sell, sink};
use crate::database::{Database, fence, request};
use crate::holder::holder;

/// `sqlx` 0.9 gives a connection back to the pool with an open transaction when its own `begin` is
/// dropped while BEGIN is under way.
#[tokio::test]
async fn cancelled_begins_leave_no_transaction_open() {
    let database = Database::new().await;
    let sink = sink(&database).await;
    holder(33, async |guard| {
        let stock = guard.fence(&sink);
        let mut finished = 0;
        for i in 0..200 {
            let begin = stock.begin::<i64>(request(&format!("r{i}")));
            finished += usize::from(cancel_after(i % 8, begin).await.is_ok());
        }
        println!("{finished} of 200 begins were done before they were cancelled");
    })
    .await;
    // Waits for the transactions of the connections that were closed.
    database.sink.claim(&fence(34)).await.expect("a claim");
    let waiting = Instant::now();
    while database.open_transactions().await > 0 {
        assert!(
            waiting.elapsed() < Duration::from_secs(10),
            "one stays open"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_dropped_transaction_is_rolled_back_before_the_next_statement() {
    let database = Database::new().await;
    let single = PgSink::new(pool(&database.url, 1).await);
    holder(33, async |guard| {
        for i in 0..20 {
            let mut tx = fresh(guard.fence(&single), &format!("r{i}")).await;
            sell(&mut tx).await;
            drop(tx);
            let fate = single.outcome(&request("none")).await;
            assert!(matches!(fate, Ok(Fate::Unknown)), "{fate:?}");
        }
    })
    .await;
    assert_eq!(database.count().await, 100);
}

#[tokio::test]
async fn a_dropped_commit_happens_wholly_or_not_at_all() {
    let database = Database::new().await;
    let sink = sink(&database).await;
    let mut applied = 0;
    for i in 0..40 {
        let (older, newer) = (2 * i + 1, 2 * i + 2);
        let sent = request(&format!("r{i}")).sent_under(fence(older));
        holder(older, async |guard| {
            let mut tx = fresh(guard.fence(&sink), &format!("r{i}")).await;
            sell(&mut tx).await;
            let polls = usize::try_from(i % 4).expect("a few");
            let _dropped = cancel_after(polls, tx.commit(i)).await;
        })
        .await;
        database.sink.claim(&fence(newer)).await.expect("a claim");
        match sink.outcome(&sent).await.expect("a fate") {
            Fate::Applied(answer) => {
                assert_eq!(answer.decode::<i64>().expect("an answer"), i);
                applied += 1;
            }
            Fate::Absent => {}
            Fate::Unknown => panic!("unknown although a newer holder has claimed"),
        }
        assert_eq!(database.count().await, 100 - applied);
    }
    println!("{applied} of 40 commits were applied");
}

#[tokio::test]
async fn a_commit_in_silence_is_ambiguous_and_the_pool_recovers() {
    let database = Database::new().await;
    let (proxy, url) = database.url_behind_a_proxy();
    let sink = PgSink::new(pool(&url, 1).await)
        .lock_timeout(Duration::from_millis(50))
        .answer_timeout(Duration::from_millis(250));
    holder(2, async |guard| {
        let mut tx = fresh(guard.fence(&sink), "r1").await;
        sell(&mut tx).await;
        proxy.silence(Way::ToServer);
        let committed = tx.commit(99).await;
        assert!(
            matches!(&committed, Err(SinkError::Ambiguous { request: Some(id) }) if id == "r1"),
            "{committed:?}"
        );
        proxy.cut().await;
        proxy.restore(Way::ToServer);
        database.sink.claim(&fence(3)).await.expect("a claim");
        let sent = request("r1").sent_under(fence(2));
        let fate = sink.outcome(&sent).await;
        assert!(matches!(fate, Ok(Fate::Absent)), "{fate:?}");
    })
    .await;
    assert_eq!(database.count().await, 100);
}

#[tokio::test]
async fn begin_and_commit_take_one_round_trip_each() {
    const DELAY: Duration = Duration::from_millis(100);
    let database = Database::new().await;
    let (proxy, url) = database.url_behind_a_proxy();
    let pool = pool(&url, 1).await;
    let sink = PgSink::new(pool.clone());
    proxy.delay(Way::ToClient, DELAY);
    let mut fewest = u128::MAX;
    for token in 1..6 {
        fewest = holder(token, async |guard| {
            // The pool takes a connection back once the last transaction's ROLLBACK was answered.
            drop(pool.acquire().await.expect("a connection"));
            while pool.num_idle() == 0 {
                tokio::task::yield_now().await;
            }
            let started = Instant::now();
            let tx = fresh(guard.fence(&sink), &format!("r{token}")).await;
            tx.commit(0).await.expect("a commit");
            fewest.min(started.elapsed().as_millis() / DELAY.as_millis())
        })
        .await;
    }
    assert_eq!(fewest, 2);
}
