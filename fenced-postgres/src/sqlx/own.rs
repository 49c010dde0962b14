use fenced_core::{Fence, SinkError};
use sqlx::{AssertSqlSafe, PgConnection, raw_sql};

use crate::bounds::Bounds;
use crate::open::{check, is_shared};
use crate::own::{CLAIM, ENTER};
use crate::refusal;
use crate::schema::{EXISTS, NEWEST, migrated, step_after};

/// Raises the fence on a connection of yours, as [`claim`](crate::claim) does.
///
/// # Errors
/// [`SinkError::Stale`]; [`SinkError::Busy`], without process ids; others of [`SinkError`].
///
/// # Cancel safety
/// The fence may have been raised, which harms nobody but older holders.
pub async fn claim(connection: &mut PgConnection, fence: &Fence) -> Result<(), SinkError> {
    claim_within(connection, fence, &Bounds::default()).await
}

/// Takes the fence into a transaction of yours, as its first statement, as [`enter`](crate::enter)
/// does; a [`Transaction`](sqlx::Transaction) derefs to its connection.
///
/// # Errors
/// [`SinkError::Stale`], [`SinkError::NotClaimed`], [`SinkError::Busy`];
/// [`SinkError::Backend`] if the transaction has written before, or is inside a savepoint.
/// After each of them the transaction can only be rolled back.
///
/// # Cancel safety
/// The transaction may have entered.
pub async fn enter(transaction: &mut PgConnection, fence: &Fence) -> Result<(), SinkError> {
    enter_within(transaction, fence, &Bounds::default()).await
}

/// Brings the schema `fenced` to the version that this crate needs, as
/// [`migrate`](crate::migrate) does.
///
/// # Errors
/// [`SinkError::Backend`], with what the server says.
///
/// # Cancel safety
/// Each step happens wholly or not at all.
pub async fn migrate(connection: &mut PgConnection) -> Result<(), SinkError> {
    loop {
        let exists = sqlx::query_scalar::<_, bool>(EXISTS).fetch_one(&mut *connection);
        let version = if exists.await.map_err(refusal::failed)? {
            let newest = sqlx::query_scalar::<_, i32>(NEWEST).fetch_one(&mut *connection);
            newest.await.map_err(refusal::failed)?
        } else {
            0
        };
        let Some(step) = step_after(version) else {
            return Ok(());
        };
        let done = raw_sql(AssertSqlSafe(step)).execute(&mut *connection).await;
        migrated(done.map(|_| ()))?;
    }
}

pub(super) async fn claim_within(
    connection: &mut PgConnection,
    fence: &Fence,
    bounds: &Bounds,
) -> Result<(), SinkError> {
    check(fence)?;
    let claiming = sqlx::query(CLAIM)
        .bind(&fence.resource)
        .bind(fence.token.get())
        .bind(is_shared(fence))
        .bind(bounds.max_step)
        .bind(&bounds.lock_timeout)
        .execute(connection);
    match claiming.await {
        Ok(_) => Ok(()),
        Err(error) => Err(refusal::refused(error, fence)),
    }
}

pub(super) async fn enter_within(
    connection: &mut PgConnection,
    fence: &Fence,
    bounds: &Bounds,
) -> Result<(), SinkError> {
    check(fence)?;
    let entering = sqlx::query(ENTER)
        .bind(&fence.resource)
        .bind(fence.token.get())
        .bind(is_shared(fence))
        .bind(fence.claimed)
        .bind(&bounds.lock_timeout)
        .bind(&bounds.idle_timeout)
        .bind(bounds.max_step)
        .execute(connection);
    match entering.await {
        Ok(_) => Ok(()),
        Err(error) => Err(refusal::refused(error, fence)),
    }
}
