//! The same sink on a pool of `sqlx`.

mod cancelled;
mod conformance;
mod own;
mod transactions;

use fenced::Fenced;
use fenced::postgres::sqlx::{FencedTx, SqlxFenced};
use fenced::postgres::{Begin, PgSink};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use crate::database::{Database, SKU, request};

pub(crate) const SELL: &str = "UPDATE stock SET count = count - 1 WHERE sku = $1";

pub(crate) async fn pool(url: &str, size: u32) -> PgPool {
    let options = PgPoolOptions::new()
        .max_connections(size)
        .test_before_acquire(false);
    options.connect(url).await.expect("a pool")
}

pub(crate) async fn sink(database: &Database) -> PgSink<PgPool> {
    PgSink::new(pool(&database.url, 8).await)
}

pub(crate) async fn fresh<'g>(stock: Fenced<'g, PgSink<PgPool>>, id: &str) -> FencedTx<'g, i64> {
    match stock.begin(request(id)).await.expect("a transaction") {
        Begin::Fresh(tx) => tx,
        Begin::Replayed(answer) => panic!("replayed {answer}"),
    }
}

pub(crate) async fn sell(tx: &mut FencedTx<'_, i64>) {
    let sold = sqlx::query(SELL).bind(SKU).execute(&mut ***tx).await;
    assert_eq!(sold.expect("a sale").rows_affected(), 1);
}
