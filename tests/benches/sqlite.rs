//! What fencing costs a SQLite transaction, beside the same transaction without it.
//!
//! `tests/run bench -- --bench sqlite`

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fenced::prelude::*;
use fenced::sqlite::rusqlite::{self, Connection};
use fenced::{MemoryLocks, section};
use fenced_tests::Times;

const ROUNDS: usize = 15;
const OPERATIONS: u32 = 2_000;

const SELL: &str = "UPDATE stock SET count = count - 1 WHERE sku = ?1 RETURNING count";

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    for synchronous in ["NORMAL", "FULL"] {
        println!("synchronous = {synchronous}");
        let folder = tempfile::tempdir()?;
        let shop = Shop::open(&folder.path().join("shop.db"), synchronous).await?;
        let times = shop.measure().await?;
        times.compare("section, fence only", "plain", 0.60);
        times.compare("section, fence, request and answer", "plain", 0.40);
    }
    Ok(())
}

struct Shop {
    plain: Arc<Mutex<Connection>>,
    stock: SqliteSink,
    locks: MemoryLocks,
}

impl Shop {
    async fn open(file: &Path, synchronous: &'static str) -> Result<Self, Failure> {
        let pragma = format!("PRAGMA synchronous = {synchronous}");
        let sql = pragma.clone();
        let stock = SqliteSink::builder()
            .on_connect(move |database| database.execute_batch(&sql))
            .open(file)
            .await?;
        let plain = Connection::open(file)?;
        plain.execute_batch(&pragma)?;
        plain.execute_batch(
            "CREATE TABLE stock (sku TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT;
             INSERT INTO stock VALUES ('4711', 1000000000)",
        )?;
        Ok(Self {
            plain: Arc::new(Mutex::new(plain)),
            stock,
            locks: MemoryLocks::new(),
        })
    }

    async fn measure(&self) -> Result<Times, Failure> {
        let mut times = Times::default();
        // The first round warms up.
        for round in 0..=ROUNDS {
            if round == 1 {
                times = Times::default();
            }
            times.take("plain", OPERATIONS, self.plain()).await;
            times
                .take("section, fence only", OPERATIONS, self.fence_only())
                .await;
            let request = self.request(round);
            times
                .take("section, fence, request and answer", OPERATIONS, request)
                .await;
        }
        Ok(times)
    }

    /// On a thread that may block, as an async service does it.
    async fn plain(&self) {
        for _ in 0..OPERATIONS {
            let plain = Arc::clone(&self.plain);
            let selling = move || {
                let mut plain = plain.lock().unwrap_or_else(PoisonError::into_inner);
                let immediate = rusqlite::TransactionBehavior::Immediate;
                let tx = plain.transaction_with_behavior(immediate)?;
                sell(&tx)?;
                tx.commit()
            };
            let sold = tokio::task::spawn_blocking(selling).await;
            sold.expect("a thread").expect("a sale");
        }
    }

    async fn fence_only(&self) {
        for _ in 0..OPERATIONS {
            let sold = section(&self.locks, "/locks/4711").run(async |guard| {
                let stock = guard.fence(&self.stock);
                stock.transaction(|tx| Ok::<_, Failure>(sell(tx)?)).await
            });
            sold.await.expect("a grant").expect("a sale");
        }
    }

    async fn request(&self, round: usize) {
        for number in 0..OPERATIONS {
            let sold = section(&self.locks, "/locks/4711").run(async |guard| {
                let request = Request::new(format!("{round}-{number}"), "4711");
                let stock = guard.fence(&self.stock);
                stock.run(request, |tx| Ok::<_, Failure>(sell(tx)?)).await
            });
            let sold = sold.await.expect("a grant").expect("a sale");
            assert!(!sold.is_replayed());
        }
    }
}

fn sell(tx: &Connection) -> Result<i64, rusqlite::Error> {
    tx.prepare_cached(SELL)?
        .query_row(["4711"], |row| row.get(0))
}
