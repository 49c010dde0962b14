use std::time::{Duration, Instant};

use async_trait::async_trait;
use fenced::{
    FencedGuard, FencingToken, Lease, LeaseHandle, LockError, LockRequest, LockService, OnLost,
    Released, section,
};

use crate::server::{SKU, token};

/// Runs `body` as the holder of [`SKU`]'s lock with this token, however many others believe to
/// hold it too; a body goes on when its lease is lost.
pub(crate) async fn holder<T, F>(token: i64, body: F) -> T
where
    F: for<'s> AsyncFnOnce(FencedGuard<'s>) -> T,
{
    let locks = Granting(self::token(token));
    let section = section(&locks, SKU).on_lost(OnLost::Finish);
    section.run(body).await.expect("a grant")
}

/// Grants its token to everybody.
struct Granting(FencingToken);

#[async_trait]
impl LockService for Granting {
    async fn acquire(&self, request: LockRequest<'_>) -> Result<Lease, LockError> {
        let deadline = Instant::now() + Duration::from_mins(10);
        let (lease, _control) = Lease::grant(request.path.clone(), self.0, deadline, Nothing);
        Ok(lease)
    }
}

struct Nothing;

#[async_trait]
impl LeaseHandle for Nothing {
    async fn release(self: Box<Self>) -> Result<Released, LockError> {
        Ok(Released::Confirmed)
    }
}
