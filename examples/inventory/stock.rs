use async_trait::async_trait;
use fenced::{Answer, FencingSink, Statement};

use crate::world::Failure;

/// Where the stock is kept: a fenced SQL database, and a plain read of it.
#[async_trait]
pub(crate) trait Stock: FencingSink<Write = Vec<Statement>, Answer = Answer> {
    /// How many pieces of `sku` there are.
    async fn count(&self, sku: &str) -> Result<i64, Failure>;
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
