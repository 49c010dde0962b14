//! What a fenced transaction promises beyond the conformance suite.

use std::future::{Future as _, poll_fn};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use fenced_core::{
    Fate, Fence, FencedGuard, FencingSink, FencingToken, LossReason, MemoryLocks, Mode, OnLost,
    Outcome, Request, SinkError, Statement, section,
};
use fenced_sqlite::rusqlite::{self, Connection};
use fenced_sqlite::{OpenError, SqliteFenced, SqliteSink};
use tempfile::TempDir;

const SKU: &str = "/locks/sku";

#[derive(Debug, thiserror::Error)]
enum ShopError {
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error("sold out")]
    SoldOut,
}

struct Shop {
    _folder: TempDir,
    file: PathBuf,
    locks: MemoryLocks,
    stock: SqliteSink,
}

impl Shop {
    async fn new() -> Self {
        Self::with_limit(SqliteSink::DEFAULT_BUSY_LIMIT).await
    }

    async fn with_limit(limit: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.db");
        let stock = SqliteSink::builder().busy_limit(limit);
        let stock = stock.open(&file).await.unwrap();
        let create = "CREATE TABLE stock (count INTEGER) STRICT; INSERT INTO stock VALUES (10)";
        Connection::open(&file)
            .unwrap()
            .execute_batch(create)
            .unwrap();
        Self {
            _folder: folder,
            file,
            locks: MemoryLocks::new(),
            stock,
        }
    }

    async fn count(&self) -> i64 {
        self.select("SELECT count FROM stock").await
    }

    async fn fence(&self) -> i64 {
        self.select("SELECT coalesce(max(token), 0) FROM fenced_fence")
            .await
    }

    async fn select(&self, sql: &'static str) -> i64 {
        let read = self
            .stock
            .read(|db| db.query_row(sql, [], |row| row.get(0)));
        read.await.unwrap()
    }

    /// Runs `body` in a section of its own.
    async fn inside<T>(&self, body: impl AsyncFnOnce(FencedGuard<'_>) -> T) -> T {
        section(&self.locks, SKU).run(body).await.unwrap()
    }
}

fn sell(db: &Connection, count: i64) -> Result<i64, ShopError> {
    let left: i64 = db.query_row("SELECT count FROM stock", [], |row| row.get(0))?;
    db.execute("UPDATE stock SET count = ?1", [left - count])?;
    if left < count {
        return Err(ShopError::SoldOut);
    }
    Ok(left - count)
}

fn token(number: i64) -> FencingToken {
    number.try_into().unwrap()
}

#[tokio::test]
async fn a_request_runs_once_and_is_answered_again() {
    let shop = Shop::new().await;
    let request = Request::new("order-1", &3);
    for expected in [Outcome::Applied(7), Outcome::Replayed(7)] {
        let sold = shop
            .inside(async |guard| {
                guard
                    .fence(&shop.stock)
                    .run(&request, |tx| sell(tx, 3))
                    .await
            })
            .await;
        assert_eq!(sold.unwrap(), expected);
    }
    let other = Request::new("order-1", &4);
    let error = shop
        .inside(async |guard| guard.fence(&shop.stock).run(other, |tx| sell(tx, 4)).await)
        .await;
    assert!(matches!(
        error,
        Err(ShopError::Sink(SinkError::RequestMismatch { .. }))
    ));
    assert_eq!(shop.count().await, 7);
}

#[tokio::test]
async fn concurrent_twins_have_one_effect() {
    let shop = Shop::new().await;
    let request = Request::new("order-1", &1);
    let applied = AtomicUsize::new(0);
    shop.inside(async |guard| {
        let stock = guard.fence(&shop.stock);
        let twin = async || {
            let sold = stock.run(&request, |tx| sell(tx, 1)).await.unwrap();
            if !sold.is_replayed() {
                applied.fetch_add(1, Ordering::SeqCst);
            }
            assert_eq!(sold.into_answer(), 9);
        };
        tokio::join!(twin(), twin(), twin(), twin());
    })
    .await;
    assert_eq!(applied.load(Ordering::SeqCst), 1);
    assert_eq!(shop.count().await, 9);
}

#[tokio::test]
async fn a_failed_body_leaves_the_claim_and_nothing_else() {
    let shop = Shop::new().await;
    let request = Request::new("order-1", &11);
    shop.inside(async |guard| {
        let stock = guard.fence(&shop.stock);
        let sold = stock.run(&request, |tx| sell(tx, 11)).await;
        assert!(matches!(sold, Err(ShopError::SoldOut)));
        assert!(stock.fence().unwrap().claimed);
        assert_eq!(shop.fence().await, guard.token().get());
        assert_eq!(shop.count().await, 10);
        let sold = stock.run(&request, |tx| sell(tx, 1)).await.unwrap();
        assert_eq!(sold, Outcome::Applied(9));
    })
    .await;
}

#[tokio::test]
async fn a_body_cannot_end_the_transaction() {
    let shop = Shop::new().await;
    shop.stock
        .claim(&Fence::new(SKU, token(100)))
        .await
        .unwrap();
    for escape in [
        "COMMIT",
        "ROLLBACK",
        "ROLLBACK; UPDATE stock SET count = -1",
        "ROLLBACK; BEGIN; UPDATE stock SET count = -1; COMMIT",
        "ROLLBACK; BEGIN IMMEDIATE; UPDATE stock SET count = -1",
        "END; BEGIN",
        "RELEASE fenced_claimed; COMMIT",
        "PRAGMA user_version = 7; COMMIT",
    ] {
        // Of another resource, so that the first of them has a claim to keep.
        let error = section(&shop.locks, "/locks/other")
            .run(async |guard| {
                let request = Request::new(escape, &());
                let stock = guard.fence(&shop.stock);
                let escaping = stock.run(request, move |tx| {
                    tx.execute("UPDATE stock SET count = -2", [])?;
                    // Whatever becomes of it, the body claims success.
                    let _ = tx.execute_batch(escape);
                    Ok::<_, ShopError>(())
                });
                escaping.await
            })
            .await
            .unwrap();
        let Err(ShopError::Sink(error)) = error else {
            panic!("{escape} escaped");
        };
        assert!(error.to_string().contains("COMMIT"), "{escape}: {error}");
        assert_eq!(shop.count().await, 10, "{escape}");
        let kept = "SELECT count(*) FROM fenced_request";
        assert_eq!(shop.select(kept).await, 0, "{escape}");
    }
}

#[tokio::test]
async fn a_savepoint_of_the_body_is_its_own_affair() {
    let shop = Shop::new().await;
    shop.inside(async |guard| {
        let selling = guard.fence(&shop.stock).transaction(|tx| {
            tx.execute_batch("SAVEPOINT try; UPDATE stock SET count = 0; ROLLBACK TO try")?;
            sell(tx, 4)
        });
        assert_eq!(selling.await.unwrap(), 6);
    })
    .await;
    assert_eq!(shop.count().await, 6);
    assert_eq!(shop.fence().await, 1);
}

#[tokio::test]
async fn a_panic_reaches_the_caller_and_leaves_nothing() {
    let shop = Arc::new(Shop::new().await);
    let panicking = Arc::clone(&shop);
    let ended = tokio::spawn(async move {
        let shop = panicking;
        section(&shop.locks, SKU)
            .run(async |guard| {
                let body = |tx: &Connection| {
                    tx.execute("UPDATE stock SET count = 0", [])?;
                    panic!("a body that panics, as it should")
                };
                let run = guard
                    .fence(&shop.stock)
                    .transaction::<(), ShopError, _>(body);
                run.await
            })
            .await
    });
    assert!(ended.await.unwrap_err().is_panic());
    assert_eq!(shop.count().await, 10);
    let sold = shop.inside(async |guard| {
        let selling = guard.fence(&shop.stock).transaction(|tx| sell(tx, 1));
        selling.await.unwrap()
    });
    assert_eq!(sold.await, 9);
}

#[tokio::test]
async fn a_stale_holder_is_refused_by_the_file_and_loses_its_lease() {
    let shop = Shop::new().await;
    let request = Request::new("order-1", &1);
    let lost = section(&shop.locks, SKU)
        .on_lost(OnLost::Finish)
        .run(async |guard| {
            let newer = Fence::new(SKU, token(guard.token().get() + 1));
            shop.stock.claim(&newer).await.unwrap();
            let stock = guard.fence(&shop.stock);
            let sold = stock.run(&request, |tx| sell(tx, 1)).await;
            let Err(ShopError::Sink(SinkError::Stale { mine, current })) = sold else {
                panic!("a stale holder sold");
            };
            assert_eq!((mine, current), (guard.token(), newer.token));
            let again = stock.run(&request, |tx| sell(tx, 1)).await;
            assert!(matches!(again, Err(ShopError::Sink(SinkError::Lost(_)))));
            guard.revoked().await
        });
    assert_eq!(lost.await.unwrap().reason, LossReason::RefusedBySink);
    assert_eq!(shop.count().await, 10);
}

#[tokio::test]
async fn a_run_whose_lease_ends_meanwhile_is_ambiguous_and_can_be_asked_for() {
    let shop = Shop::new().await;
    let (starts, started) = std::sync::mpsc::channel();
    let (go, gone) = std::sync::mpsc::channel();
    let request = Request::new("order-1", &1);
    section(&shop.locks, SKU)
        .on_lost(OnLost::Finish)
        .run(async |guard| {
            let stock = guard.fence(&shop.stock);
            let sent = request.clone().sent_under(stock.fence().unwrap());
            let running = stock.run(&request, move |tx| {
                starts.send(()).unwrap();
                gone.recv().unwrap();
                sell(tx, 1)
            });
            let losing = async {
                tokio::task::spawn_blocking(move || started.recv().unwrap())
                    .await
                    .unwrap();
                assert!(shop.locks.lose(SKU, LossReason::SessionExpired));
            };
            let (sold, ()) = tokio::join!(running, losing);
            assert!(matches!(
                sold,
                Err(ShopError::Sink(SinkError::Ambiguous { .. }))
            ));
            assert_eq!(shop.stock.outcome(&sent).await.unwrap(), Fate::Unknown);
            go.send(()).unwrap();
            let newer = Fence::new(SKU, token(guard.token().get() + 1));
            shop.stock.claim(&newer).await.unwrap();
            let Fate::Applied(answer) = shop.stock.outcome(&sent).await.unwrap() else {
                panic!("it was applied");
            };
            assert_eq!(answer.decode::<i64>().unwrap(), 9);
        })
        .await
        .unwrap();
    assert_eq!(shop.count().await, 9);
}

#[tokio::test]
async fn a_dropped_run_that_waits_for_its_turn_never_happens() {
    let shop = Shop::new().await;
    let blocker = Connection::open(&shop.file).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    shop.inside(async |guard| {
        let stock = guard.fence(&shop.stock);
        let selling = stock.transaction(|tx| sell(tx, 1));
        let dropped = tokio::time::timeout(Duration::from_millis(100), selling).await;
        assert!(dropped.is_err());
        blocker.execute_batch("COMMIT").unwrap();
        assert_eq!(stock.transaction(|tx| sell(tx, 2)).await.unwrap(), 8);
    })
    .await;
}

#[tokio::test]
async fn a_file_in_use_is_busy_within_the_limit_and_tells_by_whom() {
    let limit = Duration::from_millis(300);
    let shop = Shop::with_limit(limit).await;
    let blocker = Connection::open(&shop.file).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let started = Instant::now();
    let error = shop.stock.claim(&Fence::new(SKU, token(1))).await;
    let waited = started.elapsed();
    let Err(SinkError::Busy { resource, pids }) = error else {
        panic!("not busy");
    };
    assert_eq!(resource, SKU);
    if cfg!(target_os = "linux") {
        assert_eq!(pids, [std::process::id()]);
    }
    assert!(waited >= limit, "{waited:?}");
    assert!(waited < limit + Duration::from_secs(2), "{waited:?}");
    // Reading and opening need no turn.
    assert_eq!(shop.count().await, 10);
    SqliteSink::open(&shop.file).await.unwrap();
    blocker.execute_batch("COMMIT").unwrap();
    shop.stock.claim(&Fence::new(SKU, token(1))).await.unwrap();
}

#[tokio::test]
async fn a_body_that_takes_long_makes_the_others_busy() {
    let shop = Shop::with_limit(Duration::from_millis(200)).await;
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let (starts, started) = tokio::sync::oneshot::channel();
    shop.inside(async |guard| {
        let stock = guard.fence(&shop.stock);
        let slow = stock.transaction(move |tx| {
            starts.send(()).unwrap();
            gone.recv().unwrap();
            sell(tx, 1)
        });
        let other = async {
            started.await.unwrap();
            let error = stock.transaction(|tx| sell(tx, 1)).await;
            let Err(ShopError::Sink(SinkError::Busy { pids, .. })) = error else {
                panic!("not busy");
            };
            assert_eq!(pids, [std::process::id()]);
            go.send(()).unwrap();
        };
        let (slow, ()) = tokio::join!(slow, other);
        assert_eq!(slow.unwrap(), 9);
    })
    .await;
    assert_eq!(shop.count().await, 9);
}

#[tokio::test]
async fn a_commit_that_is_refused_changed_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let stock = SqliteSink::builder()
        .on_connect(|db| db.pragma_update(None, "foreign_keys", true))
        .open(folder.path().join("shop.db"))
        .await
        .unwrap();
    let locks = MemoryLocks::new();
    let inside = section(&locks, SKU).run(async |guard| {
        let stock = guard.fence(&stock);
        let create = "CREATE TABLE parent (id INTEGER PRIMARY KEY); CREATE TABLE child (
            parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)";
        let create = stock.transaction(|tx| tx.execute_batch(create).map_err(ShopError::from));
        create.await.unwrap();
        let orphan = |tx: &Connection| tx.execute("INSERT INTO child VALUES (1)", []);
        let request = Request::new("order-1", &());
        for _ in 0..2 {
            let error = stock.run(&request, move |tx| Ok::<_, ShopError>(orphan(tx)?));
            let Err(ShopError::Sink(SinkError::Backend(cause))) = error.await else {
                panic!("not refused");
            };
            assert!(cause.to_string().contains("FOREIGN KEY"), "{cause}");
        }
        let error = stock.transaction(move |tx| Ok::<_, ShopError>(orphan(tx)?));
        let error = error.await.unwrap_err();
        assert!(matches!(error, ShopError::Sink(SinkError::Backend(_))));
        let count = |tx: &Connection| {
            let count = "SELECT count(*) FROM child";
            Ok::<i64, ShopError>(tx.query_row(count, [], |row| row.get(0))?)
        };
        let counted = stock.run(&request, count).await;
        assert_eq!(counted.unwrap(), Outcome::Applied(0));
    });
    inside.await.unwrap();
}

#[tokio::test]
async fn a_commit_that_ends_the_transaction_without_an_answer_is_ambiguous() {
    /// As a disk that fails does, this ends the transaction within its commit.
    fn fail(tx: &Connection) -> Result<(), ShopError> {
        Ok(tx.commit_hook(Some(|| true))?)
    }
    let shop = Shop::new().await;
    shop.inside(async |guard| {
        let stock = guard.fence(&shop.stock);
        stock.claim().await.unwrap();
        let failed = stock.run(Request::new("order-1", &()), fail).await;
        let Err(ShopError::Sink(SinkError::Ambiguous { request })) = failed else {
            panic!("not ambiguous: {failed:?}");
        };
        assert_eq!(request.as_deref(), Some("order-1"));
        let failed = stock.transaction(fail).await;
        let Err(ShopError::Sink(SinkError::Ambiguous { request: None })) = failed else {
            panic!("not ambiguous: {failed:?}");
        };
    })
    .await;
}

#[tokio::test]
async fn a_queue_that_is_full_is_busy_at_once() {
    const ROOM: usize = 1_024;
    let shop = Shop::with_limit(Duration::from_secs(60)).await;
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let (starts, started) = tokio::sync::oneshot::channel();
    shop.inside(async |guard| {
        let stock = guard.fence(&shop.stock);
        let slow = stock.transaction(move |tx| {
            starts.send(()).unwrap();
            gone.recv().unwrap();
            sell(tx, 1)
        });
        let crowd = async {
            started.await.unwrap();
            let fence = stock.fence().unwrap();
            let mut waiting = Vec::new();
            for _ in 0..ROOM {
                let mut claim = Box::pin(shop.stock.claim(&fence));
                assert!(poll_fn(|cx| Poll::Ready(claim.as_mut().poll(cx).is_pending())).await);
                waiting.push(claim);
            }
            let error = shop.stock.claim(&fence).await;
            assert!(matches!(error, Err(SinkError::Busy { .. })), "{error:?}");
            go.send(()).unwrap();
            for waiter in waiting {
                waiter.await.unwrap();
            }
        };
        let (slow, ()) = tokio::join!(slow, crowd);
        assert_eq!(slow.unwrap(), 9);
        stock.claim().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn reading_what_others_lock_is_busy() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.db");
    let blocker = Connection::open(&other).unwrap();
    blocker.execute_batch("CREATE TABLE other (x)").unwrap();
    let name = other.display().to_string();
    let stock = SqliteSink::builder()
        .busy_limit(Duration::from_millis(100))
        .on_connect(move |db| db.execute("ATTACH ?1 AS other", [&name]).map(drop))
        .open(folder.path().join("shop.db"))
        .await
        .unwrap();
    let count = |db: &Connection| {
        db.query_row("SELECT count(*) FROM other.other", [], |row| {
            row.get::<_, i64>(0)
        })
    };
    assert_eq!(stock.read(count).await.unwrap(), 0);
    blocker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let Err(SinkError::Busy { resource, .. }) = stock.read(count).await else {
        panic!("not busy");
    };
    assert_eq!(resource, stock.file().display().to_string());
    blocker.execute_batch("COMMIT").unwrap();
    assert_eq!(stock.read(count).await.unwrap(), 0);
}

#[tokio::test]
async fn a_fence_that_names_no_resource_is_refused() {
    let shop = Shop::new().await;
    let request = Request::new("r", &());
    for (bad, reason) in [
        (String::new(), "it is empty"),
        ("a".repeat(1_025), "it is longer than 1024 bytes"),
        ("a\0b".to_owned(), "it holds a control character"),
    ] {
        let fence = Fence::new(bad, token(1));
        let claimed = shop.stock.claim(&fence).await;
        let written = shop.stock.write(&fence, &request, Vec::new()).await;
        for error in [claimed.unwrap_err(), written.unwrap_err()] {
            assert!(matches!(error, SinkError::Backend(_)), "{error}");
            assert!(error.to_string().ends_with(reason), "{error}");
        }
    }
    assert_eq!(shop.fence().await, 0);
    let longest = Fence::new("a".repeat(1_024), token(1));
    shop.stock.claim(&longest).await.unwrap();
}

#[tokio::test]
async fn a_claim_that_the_file_has_forgotten_is_told() {
    let shop = Shop::new().await;
    let claimed = Fence::new(SKU, token(5)).claimed(true);
    let error = shop.stock.claim(&claimed).await;
    assert!(matches!(error, Err(SinkError::NotClaimed { .. })));
    shop.stock.claim(&Fence::new(SKU, token(5))).await.unwrap();
    shop.stock.claim(&claimed).await.unwrap();
}

#[tokio::test]
async fn readers_do_not_fence_one_another() {
    let shop = Shop::new().await;
    let shared = |number| {
        let mut fence = Fence::new(SKU, token(number));
        fence.mode = Mode::Shared;
        fence
    };
    for number in [5, 7, 6] {
        shop.stock.claim(&shared(number)).await.unwrap();
    }
    let writer = |number| Fence::new(SKU, token(number));
    let error = shop.stock.claim(&writer(6)).await;
    assert!(matches!(error, Err(SinkError::Stale { .. })));
    shop.stock.claim(&writer(8)).await.unwrap();
    let error = shop.stock.claim(&shared(7)).await;
    assert!(matches!(error, Err(SinkError::Stale { .. })));
    shop.stock.claim(&shared(9)).await.unwrap();
}

#[tokio::test]
async fn statements_are_bound_by_number() {
    let shop = Shop::new().await;
    let (fence, request) = (Fence::new(SKU, token(1)), Request::new("r", &()));
    let write = |statement| shop.stock.write(&fence, &request, vec![statement]);
    let twice = "UPDATE stock SET count = $2 + $1 * 0 WHERE count <> $2";
    for bad in [
        Statement::new(twice).bind(1),
        Statement::new(twice).bind(1).bind(2).bind(3),
        Statement::new("UPDATE stock SET count = ?1").bind(1),
        Statement::new("UPDATE stock SET count = 1; UPDATE stock SET count = 2"),
        Statement::new("COMMIT"),
        Statement::new("no SQL"),
    ] {
        let error = write(bad.clone()).await;
        assert!(matches!(error, Err(SinkError::Backend(_))), "{bad:?}");
    }
    assert_eq!(shop.count().await, 10);
    let statements = vec![
        Statement::new(twice).bind(1).bind(2),
        Statement::new("SELECT count FROM stock"),
        Statement::new("UPDATE stock SET count = count RETURNING count"),
        Statement::new("DELETE FROM stock WHERE count = $1").bind(None::<i64>),
    ];
    let written = shop.stock.write(&fence, &request, statements).await;
    assert_eq!(written.unwrap().into_answer().as_json(), "[1,0,1,0]");
    assert_eq!(shop.count().await, 2);
}

#[tokio::test]
async fn reading_cannot_write() {
    let shop = Shop::new().await;
    let read = shop
        .stock
        .read(|db| db.execute("UPDATE stock SET count = 0", []));
    assert!(matches!(read.await, Err(SinkError::Backend(_))));
    let read = shop
        .stock
        .read(|db| db.execute_batch("COMMIT; DELETE FROM stock"));
    assert!(matches!(read.await, Err(SinkError::Backend(_))));
    assert_eq!(shop.count().await, 10);
}

#[tokio::test]
async fn connections_are_prepared_as_told() {
    let folder = tempfile::tempdir().unwrap();
    let stock = SqliteSink::builder()
        .on_connect(|db| db.pragma_update(None, "foreign_keys", true))
        .open(folder.path().join("shop.db"))
        .await
        .unwrap();
    let is_on =
        |db: &Connection| db.query_row("PRAGMA foreign_keys", [], |row| row.get::<_, bool>(0));
    assert!(stock.read(is_on).await.unwrap());
    let locks = MemoryLocks::new();
    let inside = section(&locks, SKU).run(async |guard| {
        let asking = guard
            .fence(&stock)
            .transaction(move |tx| Ok::<_, ShopError>(is_on(tx)?));
        asking.await.unwrap()
    });
    assert!(inside.await.unwrap());
}

#[tokio::test]
async fn a_file_of_a_newer_layout_is_refused() {
    let shop = Shop::new().await;
    let newer = "UPDATE fenced_layout SET version = 2";
    Connection::open(&shop.file)
        .unwrap()
        .execute(newer, [])
        .unwrap();
    let error = SqliteSink::open(&shop.file).await.unwrap_err();
    assert!(
        matches!(error, OpenError::Newer { found: 2, .. }),
        "{error}"
    );
}

#[test]
fn a_run_can_be_spawned() {
    fn spawnable<F: Future + Send>(_: impl Fn(Arc<Shop>) -> F) {}
    spawnable(|shop| async move {
        section(&shop.locks, SKU)
            .run(async |guard| {
                let selling = guard
                    .fence(&shop.stock)
                    .run(Request::new("r", &1), |tx| sell(tx, 1));
                selling.await
            })
            .await
    });
}
