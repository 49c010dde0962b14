use async_trait::async_trait;
use fenced::{Answer, FencingSink, Statement};

use crate::world::Failure;

/// Where sales are written: a SQL database that refuses what is stale.
pub(crate) type Sales = dyn FencingSink<Write = Vec<Statement>, Answer = Answer>;

/// Where anyone can look how many pieces are left.
#[async_trait]
pub(crate) trait Shelf: Send + Sync {
    async fn count(&self, sku: &str) -> Result<i64, Failure>;
}

/// One database, for writing and for looking.
pub(crate) struct Stock {
    pub(crate) sales: Box<Sales>,
    pub(crate) shelf: Box<dyn Shelf>,
}

pub(crate) const COUNT: &str = "SELECT count FROM inventory_stock WHERE sku = $1";

/// Puts the first pieces into the shop.
pub(crate) fn open_shop(sku: &str, count: i64) -> Vec<Statement> {
    const TABLE: &str =
        "CREATE TABLE IF NOT EXISTS inventory_stock (sku TEXT PRIMARY KEY, count BIGINT NOT NULL)";
    let put = Statement::new("INSERT INTO inventory_stock (sku, count) VALUES ($1, $2)")
        .bind(sku)
        .bind(count);
    vec![Statement::new(TABLE), put]
}

/// Sets what is left: a blind write, which would undo another's sale if it came too late.
pub(crate) fn leave(sku: &str, left: i64) -> Statement {
    Statement::new("UPDATE inventory_stock SET count = $1 WHERE sku = $2")
        .bind(left)
        .bind(sku)
}
