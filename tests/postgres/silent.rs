//! A network that swallows what is sent, under a lease that stays good.

use std::time::Duration;

use fenced::postgres::{Begin, FencedTx, PgFenced, PgSink};
use fenced::{Fate, Fenced, FencingSink, SinkError};
use fenced_tests::{Proxy, Way};

use crate::database::{Database, SKU, fence, request};
use crate::holder::holder;

async fn impatient(database: &Database) -> (Proxy, PgSink) {
    let (proxy, sink) = database.behind_a_proxy();
    let sink = sink
        .lock_timeout(Duration::from_millis(50))
        .answer_timeout(Duration::from_millis(250));
    // So that the connection of the pool is there, and what is prepared.
    sink.claim(&fence(1)).await.expect("a claim");
    (proxy, sink)
}

async fn fresh<'g>(stock: Fenced<'g, PgSink>, id: &str) -> FencedTx<'g, i64> {
    match stock.begin(request(id)).await.expect("a transaction") {
        Begin::Fresh(tx) => tx,
        Begin::Replayed(answer) => panic!("replayed {answer}"),
    }
}

fn is_retry<T: std::fmt::Debug>(answer: &Result<T, SinkError>) -> bool {
    matches!(answer, Err(SinkError::Retry(cause)) if cause.to_string().contains("did not answer"))
}

#[tokio::test]
async fn what_begins_in_silence_can_be_repeated_over_another_connection() {
    for way in [Way::ToServer, Way::ToClient] {
        let database = Database::new().await;
        let (proxy, sink) = impatient(&database).await;
        holder(2, async |guard| {
            let stock = guard.fence(&sink);
            proxy.silence(way);
            let begun = stock.begin::<i64>(request("r1")).await;
            assert!(is_retry(&begun), "{begun:?}");
            proxy.restore(way);
            drop(fresh(stock, "r1").await);
            proxy.silence(way);
            let entered = stock.enter().await;
            assert!(is_retry(&entered), "{entered:?}");
            proxy.restore(way);
            stock.enter().await.expect("a transaction").rollback();
        })
        .await;
        proxy.silence(way);
        let claimed = sink.claim(&fence(2)).await;
        assert!(is_retry(&claimed), "{claimed:?}");
        proxy.restore(way);
        sink.claim(&fence(2)).await.expect("a claim");
        proxy.silence(way);
        let fate = sink.outcome(&request("r1")).await;
        assert!(is_retry(&fate), "{fate:?}");
        proxy.restore(way);
        let fate = sink.outcome(&request("r1")).await;
        assert!(matches!(fate, Ok(Fate::Unknown)), "{fate:?}");
    }
}

#[tokio::test]
async fn a_commit_in_silence_is_ambiguous_and_its_fate_is_told_later() {
    let database = Database::new().await;
    let (proxy, sink) = impatient(&database).await;
    for (token, way, arrives) in [(2, Way::ToServer, false), (30, Way::ToClient, true)] {
        let id = format!("r{token}");
        holder(token, async |guard| {
            let tx = fresh(guard.fence(&sink), &id).await;
            let sell = "UPDATE stock SET count = count - 1 WHERE sku = $1";
            tx.execute(sell, &[&SKU]).await.expect("a sale");
            proxy.silence(way);
            let committed = tx.commit(token).await;
            assert!(
                matches!(&committed, Err(SinkError::Ambiguous { request: Some(named) }) if *named == id),
                "{committed:?}"
            );
        })
        .await;
        // What was held back never arrives.
        proxy.cut().await;
        proxy.restore(way);
        // Waits for the transaction of that connection to end.
        database
            .sink
            .claim(&fence(10 * token))
            .await
            .expect("a claim");
        let asked = request(&id).sent_under(fence(token));
        let fate = sink.outcome(&asked).await.expect("a fate");
        match fate {
            Fate::Applied(answer) => assert!(arrives && answer.decode::<i64>().ok() == Some(token)),
            Fate::Absent => assert!(!arrives),
            Fate::Unknown => panic!("not known after a newer claim"),
        }
    }
    assert_eq!(database.count().await, 99);
}
