//! What a section does with a transaction.

use fenced::postgres::{Begin, FencedTx, PgFenced, PgTx};
use fenced::{Fenced, FencingSink, HasLocks, LockService, Outcome, SinkError};
use tokio_postgres::IsolationLevel;

use crate::database::{Database, SKU, fence, request, token};
use crate::holder::{Granting, holder};

const SELL: &str = "UPDATE stock SET count = count - $1 WHERE sku = $2 RETURNING count";

async fn fresh<'g>(stock: Fenced<'g, fenced::postgres::PgSink>, id: &str) -> FencedTx<'g, i64> {
    match stock.begin(request(id)).await.expect("a transaction") {
        Begin::Fresh(tx) => tx,
        Begin::Replayed(answer) => panic!("replayed {answer}"),
    }
}

async fn sell(tx: &PgTx, quantity: i64) -> Result<i64, tokio_postgres::Error> {
    let sell = tx.prepare_cached(SELL).await?;
    Ok(tx.query_one(&sell, &[&quantity, &SKU]).await?.get(0))
}

#[tokio::test]
async fn a_section_sells_and_the_answer_is_replayed() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        let tx = fresh(stock, "r1").await;
        let left = sell(&tx, 30).await.expect("a sale");
        assert_eq!(
            tx.commit(left).await.expect("a commit"),
            Outcome::Applied(70)
        );
        assert!(stock.fence().expect("a lease").claimed);
        let again = stock.begin::<i64>(request("r1")).await.expect("a replay");
        assert!(matches!(again, Begin::Replayed(70)), "{again:?}");
    })
    .await;
    holder(34, async |guard| {
        let again = guard
            .fence(&database.sink)
            .begin::<i64>(request("r1"))
            .await;
        assert!(matches!(again, Ok(Begin::Replayed(70))), "{again:?}");
    })
    .await;
    assert_eq!(database.count().await, 70);
    assert_eq!(database.open_transactions().await, 0);
}

#[tokio::test]
async fn run_commits_what_its_body_returns() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        let sold = stock
            .run(request("r1"), async |tx: &PgTx| {
                sell(tx, 1).await.map_err(fenced::postgres::sink_error)
            })
            .await;
        assert_eq!(sold.expect("a sale"), Outcome::Applied(99));
        let failed = stock
            .run(request("r2"), async |tx: &PgTx| {
                sell(tx, 1).await.map_err(fenced::postgres::sink_error)?;
                Err::<i64, _>(SinkError::backend("no"))
            })
            .await;
        assert!(matches!(failed, Err(SinkError::Backend(_))), "{failed:?}");
    })
    .await;
    assert_eq!(database.count().await, 99);
}

struct Inventory {
    database: Database,
}

impl HasLocks for Inventory {
    fn locks(&self) -> &dyn LockService {
        static LOCKS: std::sync::OnceLock<Granting> = std::sync::OnceLock::new();
        LOCKS.get_or_init(|| Granting(token(33)))
    }
}

impl Inventory {
    async fn reserve(
        &self,
        quantity: i64,
    ) -> Result<i64, Box<dyn std::error::Error + Send + Sync>> {
        fenced::section(self.locks(), SKU)
            .run(async |guard| {
                let stock = guard.fence(&self.database.sink);
                let tx = match stock.begin(request("r1")).await? {
                    Begin::Fresh(tx) => tx,
                    Begin::Replayed(left) => return Ok(left),
                };
                let left = sell(&tx, quantity).await?;
                Ok(tx.commit(left).await?.into_answer())
            })
            .await?
    }

    async fn reserve_in_run(&self, quantity: i64) -> Result<i64, SinkError> {
        fenced::section(self.locks(), SKU)
            .run(async |guard| {
                let stock = guard.fence(&self.database.sink);
                let sold = stock.run(request("r2"), async |tx: &PgTx| {
                    let sold = tx
                        .savepoint(async |tx: &PgTx| sell(tx, quantity).await)
                        .await;
                    sold.map_err(fenced::postgres::sink_error)
                });
                sold.await.map(Outcome::into_answer)
            })
            .await
            .expect("a lock")
    }
}

/// That this compiles is half of the test: a service spawns what it handles.
#[tokio::test]
async fn a_fenced_future_can_be_spawned() {
    let inventory = std::sync::Arc::new(Inventory {
        database: Database::new().await,
    });
    let shared = std::sync::Arc::clone(&inventory);
    let sold = tokio::spawn(async move { shared.reserve(10).await }).await;
    assert_eq!(sold.expect("a task").expect("a sale"), 90);
    let shared = std::sync::Arc::clone(&inventory);
    let sold = tokio::spawn(async move { shared.reserve_in_run(10).await }).await;
    assert_eq!(sold.expect("a task").expect("a sale"), 80);
}

#[tokio::test]
async fn an_unnamed_transaction_claims_and_commits() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        let tx = stock.enter().await.expect("a transaction");
        sell(&tx, 1).await.expect("a sale");
        tx.commit().await.expect("a commit");
        assert!(stock.fence().expect("a lease").claimed);
        let tx = stock.enter().await.expect("a second one");
        sell(&tx, 1).await.expect("a sale");
        tx.rollback();
    })
    .await;
    assert_eq!(database.count().await, 99);
    let stale = database.sink.claim(&fence(32)).await;
    assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
}

#[tokio::test]
async fn a_claim_that_is_rolled_back_is_no_claim() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        drop(fresh(stock, "r1").await);
        assert!(!stock.fence().expect("a lease").claimed);
        let older = database.sink.claim(&fence(32)).await;
        older.expect("nobody newer has claimed");
        let tx = fresh(stock, "r1").await;
        tx.commit(0).await.expect("a commit");
        assert!(stock.fence().expect("a lease").claimed);
    })
    .await;
}

#[tokio::test]
async fn transactions_of_one_holder_run_in_parallel() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        stock.claim().await.expect("a claim");
        // All are open before the first commits.
        let mut open = Vec::new();
        for i in 0..5 {
            open.push(fresh(stock, &format!("r{i}")).await);
        }
        for (i, tx) in open.iter().enumerate() {
            let row = "INSERT INTO stock VALUES ($1, 1)";
            tx.execute(row, &[&format!("sku-{i}")])
                .await
                .expect("a row");
        }
        for tx in open.into_iter().rev() {
            assert_eq!(tx.commit(1).await.expect("a commit"), Outcome::Applied(1));
        }
    })
    .await;
    for i in 0..5 {
        assert_eq!(database.count_of(&format!("sku-{i}")).await, 1);
    }
}

#[tokio::test]
async fn a_savepoint_undoes_its_own_and_keeps_the_fence() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let tx = fresh(guard.fence(&database.sink), "r1").await;
        let kept = tx.savepoint(async |tx: &PgTx| sell(tx, 1).await).await;
        assert_eq!(kept.expect("a sale"), 99);
        let failed = tx
            .savepoint(async |tx: &PgTx| {
                sell(tx, 10).await?;
                let inner = tx.savepoint(async |tx: &PgTx| sell(tx, 10).await).await;
                assert_eq!(inner.expect("a sale"), 79);
                tx.execute("SELECT 1 / 0", &[]).await
            })
            .await;
        failed.expect_err("a division by zero");
        let mut dropped = Box::pin(tx.savepoint(async |tx: &PgTx| {
            sell(tx, 20).await.expect("a sale");
            std::future::pending::<Result<(), ()>>().await
        }));
        tokio::select! {
            biased;
            _ = &mut dropped => unreachable!(),
            () = tokio::time::sleep(std::time::Duration::from_millis(200)) => drop(dropped),
        }
        let claim = database
            .sink
            .clone()
            .lock_timeout(std::time::Duration::from_millis(50));
        let newer = claim.claim(&fence(34)).await;
        assert!(matches!(newer, Err(SinkError::Busy { .. })), "{newer:?}");
        assert_eq!(sell(&tx, 1).await.expect("a sale"), 98);
        tx.commit(98).await.expect("a commit");
    })
    .await;
    assert_eq!(database.count().await, 98);
}

#[tokio::test]
async fn a_lost_lease_sends_no_commit() {
    let database = Database::new().await;
    let locks = fenced::MemoryLocks::new();
    let section = fenced::section(&locks, SKU).on_lost(fenced::OnLost::Finish);
    let body = section.run(async |guard| {
        let tx = fresh(guard.fence(&database.sink), "r1").await;
        sell(&tx, 1).await.expect("a sale");
        locks.lose(SKU, fenced::LossReason::SessionExpired);
        let lost = tx.commit(99).await;
        assert!(matches!(lost, Err(SinkError::Lost(_))), "{lost:?}");
    });
    body.await.expect("a section");
    assert_eq!(database.count().await, 100);
    assert_eq!(database.open_transactions().await, 0);
}

#[tokio::test]
async fn a_stale_answer_ends_the_lease() {
    let database = Database::new().await;
    holder(33, async |guard| {
        database.sink.claim(&fence(34)).await.expect("a claim");
        let stock = guard.fence(&database.sink);
        let stale = stock.begin::<i64>(request("r1")).await;
        assert!(matches!(stale, Err(SinkError::Stale { mine, current })
            if mine == token(33) && current == token(34)));
        let lost = stock.begin::<i64>(request("r1")).await;
        assert!(matches!(lost, Err(SinkError::Lost(_))), "{lost:?}");
    })
    .await;
    assert_eq!(database.open_transactions().await, 0);
}

#[tokio::test]
async fn the_newest_holder_is_asked_to_repeat_under_strict_isolation() {
    let database = Database::new().await;
    for level in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        let sink = database.sink.clone().isolation_level(level);
        let (older, newer) = (2 * level as i64 + 1, 2 * level as i64 + 2);
        holder(older, async |old| {
            let old_tx = fresh(old.fence(&sink), &format!("old-{older}")).await;
            holder(newer, async |new| {
                let stock = new.fence(&sink);
                let waiting = stock.begin::<i64>(request(&format!("new-{newer}")));
                let committing = async {
                    database.wait_until_somebody_waits().await;
                    old_tx.commit(0).await.expect("a commit");
                };
                let (waited, ()) = tokio::join!(waiting, committing);
                let error = waited.expect_err("its snapshot is older than that commit");
                assert!(error.is_retryable(), "{error}");
                let tx = fresh(stock, &format!("new-{newer}")).await;
                tx.commit(0).await.expect("a commit");
            })
            .await;
        })
        .await;
    }
}

/// A body's future keeps room for each of its calls.
#[tokio::test]
async fn calls_add_little_to_the_future_of_a_body() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        assert!(size_of_val(&stock.begin::<i64>(request("r1"))) <= 1_024);
        assert!(size_of_val(&stock.enter()) <= 1_024);
        let tx = fresh(stock, "r1").await;
        assert!(size_of_val(&tx.commit(1)) <= 1_536);
    })
    .await;
}
