use fenced_core::{Fence, SinkError};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, GenericClient, Transaction};

use crate::bounds::Bounds;
use crate::open::{check, is_shared};
use crate::refusal;

/// The bound on its wait is set before it is called.
pub(crate) const CLAIM: &str =
    "SELECT fenced.claim($1, $2, $3, $4) FROM set_config('lock_timeout', $5, true)";
pub(crate) const ENTER: &str = "SELECT fenced.enter_own($1, $2, $3, $4, $5, $6, $7)";

/// Raises the fence on a connection of yours, as [`FencingSink::claim`] does on one of the pool.
///
/// It is for those whom a [`Fence`] has reached without a section. Inside a transaction it counts
/// once that is committed.
///
/// [`FencingSink::claim`]: fenced_core::FencingSink::claim
///
/// # Errors
/// [`SinkError::Stale`]; [`SinkError::Busy`], without process ids; others of [`SinkError`].
///
/// # Cancel safety
/// The fence may have been raised, which harms nobody but older holders.
pub async fn claim(client: &(impl GenericClient + Sync), fence: &Fence) -> Result<(), SinkError> {
    claim_within(client.client(), fence, &Bounds::default()).await
}

/// Takes the fence into a transaction of yours, as its first statement: from here to its end, no
/// newer holder can claim.
///
/// A fence that was not claimed before is claimed, which counts once the transaction is committed.
/// In a section use [`PgFenced::enter_own`](crate::PgFenced::enter_own).
///
/// Look at the result of the last statement before the COMMIT: that of an aborted transaction
/// rolls back, and tokio-postgres reports it as a success.
///
/// # Errors
/// [`SinkError::Stale`], [`SinkError::NotClaimed`], [`SinkError::Busy`];
/// [`SinkError::Backend`] if the transaction has written before, or is inside a savepoint.
/// After each of them the transaction can only be rolled back.
///
/// # Cancel safety
/// The transaction may have entered.
pub async fn enter(transaction: &Transaction<'_>, fence: &Fence) -> Result<(), SinkError> {
    enter_within(transaction.client(), fence, &Bounds::default()).await
}

pub(crate) async fn claim_within(
    client: &Client,
    fence: &Fence,
    bounds: &Bounds,
) -> Result<(), SinkError> {
    check(fence)?;
    let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
        (&fence.resource, Type::TEXT),
        (&fence.token.get(), Type::INT8),
        (&is_shared(fence), Type::BOOL),
        (&bounds.max_step, Type::INT8),
        (&bounds.lock_timeout, Type::TEXT),
    ];
    match client.query_typed_one(CLAIM, &parameters).await {
        Ok(_) => Ok(()),
        Err(error) => Err(refusal::refused(error, fence)),
    }
}

pub(crate) async fn enter_within(
    client: &Client,
    fence: &Fence,
    bounds: &Bounds,
) -> Result<(), SinkError> {
    check(fence)?;
    let parameters: [(&(dyn ToSql + Sync), Type); 7] = [
        (&fence.resource, Type::TEXT),
        (&fence.token.get(), Type::INT8),
        (&is_shared(fence), Type::BOOL),
        (&fence.claimed, Type::BOOL),
        (&bounds.lock_timeout, Type::TEXT),
        (&bounds.idle_timeout, Type::TEXT),
        (&bounds.max_step, Type::INT8),
    ];
    match client.query_typed_one(ENTER, &parameters).await {
        Ok(_) => Ok(()),
        Err(error) => Err(refusal::refused(error, fence)),
    }
}
