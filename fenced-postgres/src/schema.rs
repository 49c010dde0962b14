use fenced_core::SinkError;
use tokio_postgres::{Client, Error};

use crate::refusal;
use crate::told::Told;

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
    while let Some(step) = step_after(version(client).await.map_err(refusal::failed)?) {
        migrated(client.batch_execute(&step).await)?;
    }
    Ok(())
}

async fn version(client: &Client) -> Result<i32, Error> {
    if client.query_typed_one(EXISTS, &[]).await?.get(0) {
        Ok(client.query_typed_one(NEWEST, &[]).await?.get(0))
    } else {
        Ok(0)
    }
}

pub(crate) const EXISTS: &str = "SELECT to_regclass('fenced.version') IS NOT NULL";
pub(crate) const NEWEST: &str = "SELECT coalesce(max(version), 0) FROM fenced.version";

/// What leads to the next version: one message, and so one transaction.
pub(crate) fn step_after(version: i32) -> Option<String> {
    let done = usize::try_from(version).unwrap_or_default();
    STEPS.get(done).map(|step| format!("{LOCK}{step}"))
}

pub(crate) fn migrated<E: Told>(step: Result<(), E>) -> Result<(), SinkError> {
    match step {
        Err(error) if refusal::is_duplicate(&error) => {
            tracing::debug!("another process was faster to migrate");
            Ok(())
        }
        done => done.map_err(refusal::failed),
    }
}
