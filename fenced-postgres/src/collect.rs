use fenced_core::{FencingToken, SinkError};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use crate::refusal;

/// How many rows were collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Fences.
    pub fences: u64,
    /// Requests with their answers.
    pub requests: u64,
}

/// Deletes the fences and requests of tokens below `floor`, and remembers the floor in their
/// place, so that an older holder stays refused.
///
/// Choose a floor that is older than every holder that may still run, and than every request that
/// may still be repeated: a holder below it is stale, and a request below it would be applied
/// again. Fences that a transaction holds right now stay.
///
/// # Errors
/// [`SinkError::Backend`], with what the server says; nothing was deleted.
///
/// # Cancel safety
/// It happens wholly or not at all.
pub async fn collect(client: &Client, floor: FencingToken) -> Result<Collected, SinkError> {
    let collect = "SELECT fences, requests FROM fenced.collect($1)";
    let row = client
        .query_typed_one(collect, &[(&floor.get(), Type::INT8)])
        .await
        .map_err(refusal::failed)?;
    let rows = |index| u64::try_from(row.get::<_, i64>(index)).unwrap_or_default();
    Ok(Collected {
        fences: rows(0),
        requests: rows(1),
    })
}

/// Lowers the fence of a resource, after its lock service has lost its data and gives out tokens
/// that are lower than before. Who did it, and why, is kept in `fenced.reset`.
///
/// Until then every holder is refused, which is safe. Make sure first that no holder of an old
/// token runs any more: one that does is accepted again.
///
/// # Errors
/// [`SinkError::Backend`], with what the server says; an empty `reason` is refused.
///
/// # Cancel safety
/// It happens wholly or not at all.
pub async fn reset(
    client: &Client,
    resource: &str,
    newest: FencingToken,
    reason: &str,
) -> Result<(), SinkError> {
    let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
        (&resource, Type::TEXT),
        (&newest.get(), Type::INT8),
        (&reason, Type::TEXT),
    ];
    client
        .query_typed_one("SELECT fenced.reset($1, $2, $3)", &parameters)
        .await
        .map_err(refusal::failed)?;
    tracing::warn!(resource, token = %newest, reason, "fence reset");
    Ok(())
}

/// Lets a table refuse every write to a row whose transaction has not entered the row's resource.
///
/// `resource` is an SQL expression over the columns of the row, such as
/// `'/locks/inventory/' || sku`; a row must satisfy it before and after the write. Calling it
/// again replaces the expression. It costs about a third of the throughput of single-row writes.
///
/// It finds forgotten fences, it is no access control: the table's owner can drop it.
///
/// # Errors
/// [`SinkError::Backend`], with what the server says.
///
/// # Cancel safety
/// It happens wholly or not at all.
pub async fn guard_table(client: &Client, table: &str, resource: &str) -> Result<(), SinkError> {
    client
        .query_typed_one(
            "SELECT fenced.guard($1::regclass, $2)",
            &[(&table, Type::TEXT), (&resource, Type::TEXT)],
        )
        .await
        .map_err(refusal::sink_error)?;
    Ok(())
}
