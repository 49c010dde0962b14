use fenced_core::{Fence, SinkError};
use tokio_postgres::types::ToSql;

use crate::open::{check, is_shared};
use crate::{PgSink, refusal};

/// The bound on its wait is set before it is called.
const CLAIM: &str = "SELECT fenced.claim($1, $2, $3, $4) FROM set_config('lock_timeout', $5, true)";

/// A transaction of its own, in one round trip.
pub(crate) async fn claim_pooled(sink: &PgSink, fence: &Fence) -> Result<(), SinkError> {
    check(fence)?;
    let client = sink.connection().await?;
    let claim = client.prepare_cached(CLAIM).await;
    let claim = claim.map_err(refusal::unprepared)?;
    let (token, shared) = (fence.token.get(), is_shared(fence));
    let parameters: [&(dyn ToSql + Sync); 5] = [
        &fence.resource,
        &token,
        &shared,
        &sink.max_step,
        &sink.lock_timeout,
    ];
    match client.query_one(&claim, &parameters).await {
        Ok(_) => Ok(()),
        Err(error) => Err(refusal::refused(error, fence)),
    }
}
