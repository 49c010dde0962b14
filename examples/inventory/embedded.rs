use async_trait::async_trait;
use fenced::sqlite::SqliteSink;

use crate::stock::{COUNT, Shelf};
use crate::world::Failure;

#[async_trait]
impl Shelf for SqliteSink {
    async fn count(&self, sku: &str) -> Result<i64, Failure> {
        let sku = sku.to_owned();
        let count = self
            .read(move |database| database.query_row(COUNT, (sku,), |row| row.get(0)))
            .await?;
        Ok(count)
    }
}
