//! The same shop on real servers.

#[cfg(feature = "postgres")]
pub(crate) use postgres::stock;
#[cfg(feature = "zookeeper")]
pub(crate) use zookeeper::locks;

#[cfg(feature = "zookeeper")]
mod zookeeper {
    use fenced::zookeeper::ZkLocks;

    use crate::world::{Failure, LEASE};

    pub(crate) async fn locks(servers: &str, owner: &str) -> Result<ZkLocks, Failure> {
        let locks = ZkLocks::builder().session_timeout(LEASE).owner(owner);
        Ok(locks.connect(servers).await?)
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use std::time::Duration;

    use async_trait::async_trait;
    use fenced::postgres::deadpool_postgres::{Manager, Pool};
    use fenced::postgres::tokio_postgres::NoTls;
    use fenced::postgres::{PgSink, migrate};

    use crate::stock::{COUNT, Shelf, Stock};
    use crate::world::Failure;

    /// How long to wait for the server at the start.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// A sink, and the pool for plain reads beside it.
    pub(crate) async fn stock(url: &str) -> Result<Stock, Failure> {
        match tokio::time::timeout(PATIENCE, connect(url)).await {
            Ok(stock) => stock.map_err(|error| format!("cannot use PostgreSQL: {error}").into()),
            Err(_) => Err("PostgreSQL did not answer within 5 seconds: check the URL".into()),
        }
    }

    async fn connect(url: &str) -> Result<Stock, Failure> {
        let manager = Manager::new(url.parse()?, NoTls);
        let pool = Pool::builder(manager).max_size(4).build()?;
        let client = pool.get().await?;
        migrate(&client).await?;
        Ok(Stock {
            sales: Box::new(PgSink::new(pool.clone())),
            shelf: Box::new(PgShelf(pool)),
        })
    }

    struct PgShelf(Pool);

    #[async_trait]
    impl Shelf for PgShelf {
        async fn count(&self, sku: &str) -> Result<i64, Failure> {
            let client = self.0.get().await?;
            Ok(client.query_one(COUNT, &[&sku]).await?.get(0))
        }
    }
}
