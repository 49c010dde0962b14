use std::pin::pin;

use fenced_core::{Fence, SinkError};
use sqlx::{PgConnection, PgPool};

use super::tx::SqlxTx;
use crate::PgSink;
use crate::blockers::{BETWEEN_LOOKS, BLOCKING, LIMIT, WAIT, busy};
use crate::refusal;

/// Adds to [`SinkError::Busy`] whom the server names; see `crate::blockers`.
pub(super) async fn named<T>(
    sink: &PgSink<PgPool>,
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

async fn find(sink: &PgSink<PgPool>, fence: &Fence) -> Result<Vec<u32>, SinkError> {
    let mut waiting = SqlxTx::new(sink.connection().await?);
    let mut looking = sink.connection().await?;
    let pid = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *waiting);
    let pid: i32 = pid.await.map_err(refusal::failed)?;
    let mut wait = pin!(waiting.begin(sink.entering(fence, None, WAIT)?));
    loop {
        tokio::select! {
            biased;
            _ = &mut wait => return Ok(Vec::new()),
            () = tokio::time::sleep(BETWEEN_LOOKS) => {}
        }
        let pids = blocking(&mut looking, pid).await?;
        if !pids.is_empty() {
            // The next one would find it in its way.
            drop(wait.await);
            return Ok(pids);
        }
    }
}

async fn blocking(connection: &mut PgConnection, pid: i32) -> Result<Vec<u32>, SinkError> {
    let pids = sqlx::query_scalar::<_, i32>(BLOCKING).bind(pid);
    let pids = pids.fetch_all(connection).await.map_err(refusal::failed)?;
    Ok(pids
        .into_iter()
        .filter_map(|pid| u32::try_from(pid).ok())
        .collect())
}
