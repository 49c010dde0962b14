use std::path::{Path, PathBuf};
use std::time::Duration;

use fenced::LockService;
use fenced::sqlite::{SqliteLocks, SqliteSink};

use crate::args::Args;
#[cfg(any(feature = "zookeeper", feature = "postgres"))]
use crate::servers;
use crate::stock::Stock;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long a lease lasts: short, so that the story is.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// Where the locks come from.
pub(crate) async fn locks(args: &Args, owner: &str) -> Result<Box<dyn LockService>, Failure> {
    #[cfg(feature = "zookeeper")]
    if let Some(servers) = &args.zk {
        return Ok(Box::new(servers::locks(servers, owner).await?));
    }
    let locks = SqliteLocks::builder().lease(LEASE).label(owner);
    Ok(Box::new(locks.open(database(args)?).await?))
}

/// Where the stock is kept.
pub(crate) async fn stock(args: &Args) -> Result<Stock, Failure> {
    #[cfg(feature = "postgres")]
    if let Some(url) = &args.postgres {
        return servers::stock(url).await;
    }
    let sink = SqliteSink::open(database(args)?).await?;
    Ok(Stock {
        sales: Box::new(sink.clone()),
        shelf: Box::new(sink),
    })
}

fn database(args: &Args) -> Result<PathBuf, Failure> {
    let folder = args
        .folder
        .as_ref()
        .ok_or("no folder for the embedded default")?;
    Ok(Path::new(folder).join("shop.db"))
}
