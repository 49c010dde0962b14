//! What goes wrong without a claim, a row lock, or the right order; two sessions each.

use std::time::Duration;

use fenced::postgres::{Begin, FencedTx, PgFenced, PgSink, PgTx};
use fenced::{Fenced, FencingSink, Outcome, SinkError};
use tokio_postgres::Error;

use crate::database::{Database, SKU, add, fence, request, set, token};
use crate::holder::holder;

async fn fresh<'g>(stock: Fenced<'g, PgSink>, id: &str) -> FencedTx<'g, i64> {
    match stock.begin(request(id)).await.expect("a transaction") {
        Begin::Fresh(tx) => tx,
        Begin::Replayed(answer) => panic!("replayed {answer}"),
    }
}

async fn count(tx: &PgTx) -> i64 {
    let row = tx.query_one("SELECT count FROM stock WHERE sku = $1", &[&SKU]);
    row.await.expect("a count").get(0)
}

async fn set_count(tx: &PgTx, count: i64) -> Result<u64, Error> {
    let update = "UPDATE stock SET count = $1 WHERE sku = $2";
    tx.execute(update, &[&count, &SKU]).await
}

fn assert_stale<T>(result: Result<T, SinkError>) {
    match result {
        Err(SinkError::Stale { mine, current }) => {
            assert_eq!((mine, current), (token(33), token(34)));
        }
        Err(other) => panic!("not stale, but: {other}"),
        Ok(_) => panic!("33 was accepted after 34"),
    }
}

/// S1: the older holder has compared and stalls before its COMMIT: the newer one waits for it, so
/// that nothing older lands after it.
#[tokio::test]
async fn a_newer_claim_waits_for_an_older_transaction() {
    let database = Database::new().await;
    holder(33, async |old| {
        let old_tx = fresh(old.fence(&database.sink), "old").await;
        set_count(&old_tx, 99).await.expect("an update");
        holder(34, async |new| {
            let claiming = async {
                let new_tx = fresh(new.fence(&database.sink), "new").await;
                let seen = count(&new_tx).await;
                set_count(&new_tx, seen - 1).await.expect("an update");
                new_tx.commit(seen - 1).await.expect("a commit")
            };
            let committing = async {
                database.wait_until_somebody_waits().await;
                old_tx.commit(99).await.expect("a commit")
            };
            let (new_done, old_done) = tokio::join!(claiming, committing);
            assert_eq!(old_done, Outcome::Applied(99));
            assert_eq!(new_done, Outcome::Applied(98));
        })
        .await;
    })
    .await;
    assert_eq!(database.count().await, 98);
}

/// S2: the older holder begins while the newer one's claim is in flight: it waits, and is stale.
#[tokio::test]
async fn an_older_transaction_waits_for_a_newer_claim_and_is_stale() {
    let database = Database::new().await;
    database.sink.claim(&fence(33)).await.expect("a claim");
    holder(33, async |old| {
        let stock = old.fence(&database.sink);
        stock.claim().await.expect("an equal claim");
        holder(34, async |new| {
            let new_tx = fresh(new.fence(&database.sink), "new").await;
            let committing = async {
                database.wait_until_somebody_waits().await;
                new_tx.commit(0).await.expect("a commit");
            };
            let (stale, ()) = tokio::join!(stock.begin::<i64>(request("old")), committing);
            assert_stale(stale);
        })
        .await;
    })
    .await;
}

/// S2 without a claim of its own: the stale upsert waits as well.
#[tokio::test]
async fn an_older_claim_waits_for_a_newer_one_and_is_stale() {
    let database = Database::new().await;
    holder(34, async |new| {
        let new_tx = fresh(new.fence(&database.sink), "new").await;
        let committing = async {
            database.wait_until_somebody_waits().await;
            new_tx.commit(0).await.expect("a commit");
        };
        let older = fence(33);
        let (stale, ()) = tokio::join!(database.sink.claim(&older), committing);
        assert_stale(stale);
    })
    .await;
}

/// S4: a transaction that only entered, shared, holds up a newer claim too.
#[tokio::test]
async fn a_newer_claim_waits_for_all_transactions_of_the_older_holder() {
    let database = Database::new().await;
    holder(33, async |old| {
        let stock = old.fence(&database.sink);
        stock.claim().await.expect("a claim");
        let (one, two) = (fresh(stock, "r1").await, fresh(stock, "r2").await);
        let newer = fence(34);
        let mut claiming = Box::pin(database.sink.claim(&newer));
        let committing = async {
            database.wait_until_somebody_waits().await;
            one.commit(1).await.expect("a commit");
            database.wait_until_somebody_waits().await;
        };
        tokio::select! {
            biased;
            claimed = &mut claiming => panic!("claimed beside an open transaction: {claimed:?}"),
            () = committing => {}
        }
        let (claimed, committed) = tokio::join!(claiming, two.commit(2));
        claimed.expect("a claim");
        assert_eq!(committed.expect("a commit"), Outcome::Applied(2));
        assert_stale(stock.begin::<i64>(request("r3")).await);
    })
    .await;
}

/// R1, R2: read, a foreign write, write. The claim comes before the read, so that the older
/// holder's write is refused instead of being lost.
#[tokio::test]
async fn nothing_older_lands_between_a_newer_read_and_its_write() {
    let database = Database::new().await;
    holder(33, async |old| {
        let old_stock = old.fence(&database.sink);
        old_stock.claim().await.expect("a claim");
        holder(34, async |new| {
            let new_tx = fresh(new.fence(&database.sink), "new").await;
            let seen = count(&new_tx).await;
            let committing = async {
                database.wait_until_somebody_waits().await;
                set_count(&new_tx, seen - 1).await.expect("an update");
                new_tx.commit(seen - 1).await.expect("a commit");
            };
            let old_request = request("old");
            let older = old_stock.write(&old_request, set(SKU, 50));
            let (stale, ()) = tokio::join!(older, committing);
            assert_stale(stale);
        })
        .await;
    })
    .await;
    assert_eq!(database.count().await, 99);
}

/// R3: claim in one transaction, read and write in others.
#[tokio::test]
async fn a_claim_protects_the_reads_after_it() {
    let database = Database::new().await;
    database.sink.claim(&fence(33)).await.expect("a claim");
    holder(34, async |new| {
        let stock = new.fence(&database.sink);
        stock.claim().await.expect("a claim");
        let seen = database.count().await;
        assert_stale(
            database
                .sink
                .write(&fence(33), &request("old"), add(SKU, -1))
                .await,
        );
        let claimed = fence(33).claimed(true);
        assert_stale(
            database
                .sink
                .write(&claimed, &request("old"), add(SKU, -1))
                .await,
        );
        let tx = fresh(stock, "new").await;
        set_count(&tx, seen - 1).await.expect("an update");
        tx.commit(seen - 1).await.expect("a commit");
    })
    .await;
    assert_eq!(database.count().await, 99);
}

/// C1: the same holder's second write is not refused. C3: 33 touches A and stalls, 34 touches B:
/// the fence is the lock's, not a row's, so 34 waits.
#[tokio::test]
async fn the_fence_covers_every_row_of_the_lock() {
    let database = Database::new().await;
    let other = "/locks/inventory/other";
    for id in ["r1", "r2"] {
        let written = database
            .sink
            .write(&fence(33), &request(id), add(other, 1))
            .await;
        assert!(!written.expect("a write").is_replayed());
    }
    holder(33, async |old| {
        let old_tx = fresh(old.fence(&database.sink), "old").await;
        set_count(&old_tx, 1).await.expect("an update");
        let newer = database
            .sink
            .clone()
            .lock_timeout(Duration::from_millis(50));
        let busy = newer
            .write(&fence(34), &request("new"), add(other, 1))
            .await;
        assert!(matches!(busy, Err(SinkError::Busy { .. })), "{busy:?}");
        assert_eq!(database.count_of(other).await, 2);
        old_tx.commit(1).await.expect("a commit");
    })
    .await;
    let written = newer_write(&database, other).await;
    assert_eq!(written.expect("a write").into_answer().as_json(), "[1]");
    assert_stale(
        database
            .sink
            .write(&fence(33), &request("late"), add(SKU, 1))
            .await,
    );
}

async fn newer_write(database: &Database, sku: &str) -> Result<Outcome<fenced::Answer>, SinkError> {
    database
        .sink
        .write(&fence(34), &request("new"), add(sku, 1))
        .await
}

/// C4: a row that was deleted does not take the fence with it.
#[tokio::test]
async fn a_deleted_row_does_not_admit_a_stale_insert() {
    let database = Database::new().await;
    let delete = "DELETE FROM stock WHERE sku = $1";
    let delete = vec![fenced::Statement::new(delete).bind(SKU)];
    let deleted = database
        .sink
        .write(&fence(34), &request("new"), delete)
        .await;
    assert_eq!(deleted.expect("a write").into_answer().as_json(), "[1]");
    assert_stale(
        database
            .sink
            .write(&fence(33), &request("old"), add(SKU, 7))
            .await,
    );
    assert_eq!(database.count().await, 0);
}

/// L1, L2: a stale holder that leaves its transaction open holds up nobody.
#[tokio::test]
async fn a_refused_transaction_holds_nothing() {
    let database = Database::new().await;
    database.sink.claim(&fence(34)).await.expect("a claim");
    let mut session = database.session().await;
    for claimed in [false, true] {
        let tx = session.client.transaction().await.expect("a transaction");
        assert_stale(fenced::postgres::enter(&tx, &fence(33).claimed(claimed)).await);
        // Still open, and aborted.
        let newer = database
            .sink
            .clone()
            .lock_timeout(Duration::from_millis(200));
        let next = 35 + i64::from(claimed);
        newer
            .claim(&fence(next))
            .await
            .expect("nobody is in the way");
        database
            .sink
            .claim(&fence(next))
            .await
            .expect("an equal claim");
        drop(tx);
        let back = "SELECT fenced.reset($1, 34, 'back to the start')";
        session.client.query(back, &[&SKU]).await.expect("a reset");
    }
}

/// D1, UPG: two transactions of one holder that claim and then enter do not deadlock.
#[tokio::test]
async fn first_transactions_that_begin_together_do_not_deadlock() {
    let database = Database::new().await;
    for round in 0..20 {
        holder(33 + round, async |guard| {
            let stock = guard.fence(&database.sink);
            let sell = async |id: &str| {
                let tx = fresh(stock, &format!("{id}-{round}")).await;
                let sell = "UPDATE stock SET count = count - 1 WHERE sku = $1";
                tx.execute(sell, &[&SKU]).await.expect("a sale");
                tx.commit(1).await.expect("a commit");
            };
            tokio::join!(sell("a"), sell("b"), sell("c"));
        })
        .await;
    }
    assert_eq!(database.count().await, 100 - 60);
}
