//! What fencing costs a transaction, beside the same transaction without it.
//!
//! `tests/run bench -- --bench postgres`

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fenced::postgres::deadpool_postgres::{Manager, Object, Pool};
use fenced::postgres::tokio_postgres::{Config, NoTls};
use fenced::postgres::{Begin, PgFenced, PgSink, migrate};
use fenced::{LockError, MemoryLocks, Request, SinkError, section};
use fenced_tests::{Postgres, Times};

const ROUNDS: usize = 15;
const OPERATIONS: u64 = 1_200;
const WORKERS: u64 = 4;
const SKUS: u64 = 10_000;

const SELL: &str = "UPDATE stock SET count = count - 1 WHERE sku = $1 RETURNING count";
const RECORD: &str = "INSERT INTO sale (id, digest, answer) VALUES ($1, $2, $3)";

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    for synchronous in [false, true] {
        println!(
            "synchronous_commit and fsync {}",
            if synchronous { "on" } else { "off" }
        );
        let shop = Shop::open(synchronous).await?;
        let times = shop.measure().await;
        times.compare("section, fence only", "plain", 0.80);
        times.compare("section, fence, request and answer", "plain", 0.60);
        times.compare(
            "section, fence, request and answer",
            "plain, own request row",
            0.80,
        );
        times.compare("one holder's parallel transactions", "parallel plain", 0.70);
    }
    Ok(())
}

struct Shop {
    pool: Pool,
    stock: PgSink,
    locks: MemoryLocks,
    next: AtomicU64,
    _server: Postgres,
}

impl Shop {
    async fn open(synchronous: bool) -> Result<Arc<Self>, Failure> {
        let server = Postgres::options().fsync(synchronous).start()?;
        let manager = Manager::new(Config::from_str(&server.url())?, NoTls);
        let pool = Pool::builder(manager).max_size(8).build()?;
        let client = pool.get().await?;
        migrate(&client).await?;
        client
            .batch_execute(
                "CREATE TABLE stock (sku text PRIMARY KEY, count bigint NOT NULL) WITH (fillfactor = 70);
                 INSERT INTO stock SELECT 'sku-' || n, 1000000 FROM generate_series(0, 9999) AS n;
                 CREATE TABLE sale (id text PRIMARY KEY, digest bytea NOT NULL, answer text NOT NULL);",
            )
            .await?;
        drop(client);
        Ok(Arc::new(Self {
            stock: PgSink::new(pool.clone()),
            pool,
            locks: MemoryLocks::new(),
            next: AtomicU64::new(0),
            _server: server,
        }))
    }

    async fn measure(self: &Arc<Self>) -> Times {
        let mut times = Times::default();
        for round in 0..=ROUNDS {
            // The first round warms up.
            if round == 1 {
                times = Times::default();
            }
            let count = u32::try_from(OPERATIONS).expect("a count");
            times.take("plain", count, self.by_all(Self::plain)).await;
            times
                .take("section, fence only", count, self.by_all(Self::fence_only))
                .await;
            times
                .take("plain, own request row", count, self.by_all(Self::own_row))
                .await;
            times
                .take(
                    "section, fence, request and answer",
                    count,
                    self.by_all(Self::request),
                )
                .await;
            times
                .take("parallel plain", count, self.by_all(Self::plain))
                .await;
            times
                .take(
                    "one holder's parallel transactions",
                    count,
                    self.one_holder(),
                )
                .await;
        }
        times
    }

    /// Several workers do the same thing.
    async fn by_all<F>(self: &Arc<Self>, operation: fn(Arc<Self>, String) -> F)
    where
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..WORKERS {
            let shop = Arc::clone(self);
            workers.spawn(async move {
                for _ in 0..OPERATIONS / WORKERS {
                    let sku = shop.sku();
                    operation(Arc::clone(&shop), sku).await?;
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(done) = workers.join_next().await {
            done.expect("a worker").expect("an operation");
        }
    }

    async fn plain(self: Arc<Self>, sku: String) -> Result<(), Failure> {
        let mut client = self.pool.get().await?;
        let tx = client.transaction().await?;
        let statement = tx.prepare_cached(SELL).await?;
        let _left: i64 = tx.query_one(&statement, &[&sku]).await?.get(0);
        Ok(tx.commit().await?)
    }

    async fn own_row(self: Arc<Self>, sku: String) -> Result<(), Failure> {
        let id = format!("plain-{}", self.number());
        let mut client: Object = self.pool.get().await?;
        let tx = client.transaction().await?;
        let statement = tx.prepare_cached(SELL).await?;
        let left: i64 = tx.query_one(&statement, &[&sku]).await?.get(0);
        let record = tx.prepare_cached(RECORD).await?;
        let request = Request::new(&id, &sku);
        let digest = request.digest()?.as_slice();
        tx.execute(&record, &[&id, &digest, &left.to_string()])
            .await?;
        Ok(tx.commit().await?)
    }

    async fn fence_only(self: Arc<Self>, sku: String) -> Result<(), Failure> {
        section(&self.locks, format!("/locks/{sku}"))
            .run(async |guard| {
                let tx = guard.fence(&self.stock).enter().await?;
                let statement = tx.prepare_cached(SELL).await?;
                let _left: i64 = tx.query_one(&statement, &[&sku]).await?.get(0);
                Ok::<_, Failure>(tx.commit().await?)
            })
            .await?
    }

    async fn request(self: Arc<Self>, sku: String) -> Result<(), Failure> {
        let id = format!("fenced-{}", self.number());
        section(&self.locks, format!("/locks/{sku}"))
            .run(async |guard| {
                let request = Request::new(&id, &sku);
                let Begin::Fresh(tx) = guard.fence(&self.stock).begin(request).await? else {
                    return Err("replayed".into());
                };
                let statement = tx.prepare_cached(SELL).await?;
                let left: i64 = tx.query_one(&statement, &[&sku]).await?.get(0);
                tx.commit(left).await?;
                Ok::<_, Failure>(())
            })
            .await?
    }

    /// One section, whose transactions run side by side.
    async fn one_holder(self: &Arc<Self>) {
        let done = section(&self.locks, "/locks/all").run(async |guard| {
            let stock = guard.fence(&self.stock);
            stock.claim().await?;
            let worker = async || {
                for _ in 0..OPERATIONS / WORKERS {
                    let sku = self.sku();
                    let tx = stock.enter().await?;
                    let statement = tx.prepare_cached(SELL).await.map_err(SinkError::backend)?;
                    let sold = tx.query_one(&statement, &[&sku]).await;
                    let _left: i64 = sold.map_err(SinkError::backend)?.get(0);
                    tx.commit().await?;
                }
                Ok::<_, SinkError>(())
            };
            tokio::try_join!(worker(), worker(), worker(), worker()).map(|_| ())
        });
        let done: Result<Result<(), SinkError>, LockError> = done.await;
        done.expect("a grant").expect("transactions");
    }

    /// Another one each time, in an order without a pattern.
    fn sku(&self) -> String {
        format!("sku-{}", self.number().wrapping_mul(7_919) % SKUS)
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}
