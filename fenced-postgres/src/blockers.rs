use std::pin::pin;
use std::time::Duration;

use fenced_core::{Fence, SinkError};
use tokio_postgres::Error;
use tokio_postgres::types::Type;

use crate::tx::PgTx;
use crate::{PgSink, refusal};

/// How long it may take to find out who holds up a fence.
pub(crate) const LIMIT: Duration = Duration::from_secs(1);
/// How long the probe waits for the fence, in milliseconds.
pub(crate) const WAIT: &str = "250";
pub(crate) const BLOCKING: &str = "SELECT DISTINCT unnest(pg_blocking_pids($1))";
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Adds to [`SinkError::Busy`] whom the server names.
pub(crate) async fn named<T>(
    sink: &PgSink,
    fence: &Fence,
    result: Result<T, SinkError>,
) -> Result<T, SinkError> {
    let Err(SinkError::Busy { resource, .. }) = result else {
        return result;
    };
    let found = tokio::time::timeout(LIMIT, find(sink, fence)).await;
    let pids = found.ok().and_then(Result::ok).unwrap_or_default();
    Err(busy(resource, pids))
}

pub(crate) fn busy(resource: String, pids: Vec<u32>) -> SinkError {
    tracing::warn!(resource, ?pids, "an open transaction holds up the fence");
    SinkError::Busy { resource, pids }
}

/// The server names blockers only while somebody is blocked, so one connection waits once more,
/// and another one looks on. Its transaction is rolled back in any case.
async fn find(sink: &PgSink, fence: &Fence) -> Result<Vec<u32>, SinkError> {
    let waiting = PgTx::new(sink.connection().await?, LIMIT);
    let looking = sink.connection().await?;
    let pid = waiting
        .query_typed_one("SELECT pg_backend_pid()", &[])
        .await;
    let pid: i32 = pid.map_err(refusal::failed)?.get(0);
    let mut wait = pin!(sink.enter(&waiting, fence, None, WAIT));
    loop {
        tokio::select! {
            biased;
            _ = &mut wait => return Ok(Vec::new()),
            () = tokio::time::sleep(BETWEEN_LOOKS) => {}
        }
        let pids = blocking(&looking, pid).await.map_err(refusal::failed)?;
        if !pids.is_empty() {
            // The next one would find it in its way.
            drop(wait.await);
            return Ok(pids);
        }
    }
}

async fn blocking(client: &tokio_postgres::Client, pid: i32) -> Result<Vec<u32>, Error> {
    let rows = client.query_typed(BLOCKING, &[(&pid, Type::INT4)]).await?;
    let pids = rows.iter().map(|row| row.get::<_, i32>(0));
    Ok(pids.filter_map(|pid| u32::try_from(pid).ok()).collect())
}
