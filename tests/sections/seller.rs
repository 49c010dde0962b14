//! One process of the contention test: `seller ZK POSTGRES SKU SECTIONS`.

use fenced::postgres::deadpool_postgres::{Manager, Pool};
use fenced::postgres::tokio_postgres::NoTls;
use fenced::prelude::*;

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct Seller {
    locks: ZkLocks,
    stock: PgSink,
}

impl HasLocks for Seller {
    fn locks(&self) -> &dyn LockService {
        &self.locks
    }
}

impl Seller {
    /// Reads in one transaction and writes in another, so that a lost update can happen; each
    /// leaves a row that says so.
    #[fenced(lock = "/locks/sections/<sku>", timeout = "120s")]
    async fn sell(&self, guard: FencedGuard<'_>, sku: &str, order: &str) -> Result<(), Failure> {
        let token = guard.token().get();
        let stock = guard.fence(&self.stock);
        let reading = stock.enter().await?;
        let enter = "INSERT INTO journal (sku, token, step) VALUES ($1, $2, 'enter')";
        reading.execute(enter, &[&sku, &token]).await?;
        let count = "SELECT count FROM stock WHERE sku = $1";
        let count: i64 = reading.query_one(count, &[&sku]).await?.get(0);
        reading.commit().await?;

        let Begin::Fresh(writing) = stock.begin::<i64>(Request::new(order, sku)).await? else {
            return Err("an order was answered before".into());
        };
        let left = count - 1;
        let leave = "UPDATE stock SET count = $2 WHERE sku = $1";
        writing.execute(leave, &[&sku, &left]).await?;
        let exit = "INSERT INTO journal (sku, token, step) VALUES ($1, $2, 'exit')";
        writing.execute(exit, &[&sku, &token]).await?;
        writing.commit(left).await?;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [zk, postgres, sku, sections] = arguments.as_slice() else {
        return Err("usage: seller ZK POSTGRES SKU SECTIONS".into());
    };
    let pool = Pool::builder(Manager::new(postgres.parse()?, NoTls)).max_size(2);
    let seller = Seller {
        locks: ZkLocks::connect(zk).await?,
        stock: PgSink::new(pool.build()?),
    };
    for section in 0..sections.parse()? {
        let order = format!("{sku}/{}/{section}", std::process::id());
        seller.sell(sku, &order).await?;
    }
    seller.locks.close().await?;
    Ok(())
}
