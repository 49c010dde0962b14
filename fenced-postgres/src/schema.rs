use fenced_core::SinkError;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use crate::refusal;

/// The steps from an empty database to the newest schema; the n-th leads to version n.
const STEPS: [&str; 1] = [include_str!("schema/1.sql")];

/// One migration at a time in a database; the number is arbitrary, and ours for good.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7241653089117);";

/// The SQL that [`migrate`] runs in an empty database, for those who run their own migrations.
///
/// Run it once, in one transaction. The role of the service needs `USAGE` of the schema `fenced`,
/// and `SELECT, INSERT, UPDATE` of its tables.
#[must_use]
pub fn schema() -> String {
    STEPS.concat()
}

/// Brings the schema `fenced` of a database to the version that this crate needs.
///
/// It may be called at every start, by several processes at once, and leaves a newer version as it
/// is. The client must not be inside a transaction.
///
/// # Errors
/// [`SinkError::Backend`], with what the server says.
///
/// # Cancel safety
/// Each step happens wholly or not at all.
pub async fn migrate(client: &Client) -> Result<(), SinkError> {
    while let Some(step) = missing_step(client).await.map_err(refusal::failed)? {
        // One message, and so one transaction.
        match client.batch_execute(&format!("{LOCK}{step}")).await {
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                tracing::debug!("another process was faster to migrate");
            }
            done => done.map_err(refusal::failed)?,
        }
    }
    Ok(())
}

async fn missing_step(client: &Client) -> Result<Option<&'static str>, Error> {
    let exists = "SELECT to_regclass('fenced.version') IS NOT NULL";
    let version: i32 = if client.query_typed_one(exists, &[]).await?.get(0) {
        let newest = "SELECT coalesce(max(version), 0) FROM fenced.version";
        client.query_typed_one(newest, &[]).await?.get(0)
    } else {
        0
    };
    let done = usize::try_from(version).unwrap_or_default();
    Ok(STEPS.get(done).copied())
}
