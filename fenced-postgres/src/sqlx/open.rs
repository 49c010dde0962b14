use fenced_core::{Answer, Fence, Opened, Request, SinkError};
use sqlx::pool::PoolConnection;
use sqlx::{Error, PgPool, Postgres};

use super::blockers;
use super::literal::{bytes, or_null, text};
use super::tx::SqlxTx;
use crate::PgSink;
use crate::bounds::answered;
use crate::open::{check, is_shared};
use crate::refusal::{self, NoConnection};
use crate::told::Told as _;

impl PgSink<PgPool> {
    /// BEGIN, the fence, and the request's stored answer, in one round trip.
    pub(super) async fn open(
        &self,
        fence: &Fence,
        request: Option<&Request>,
    ) -> Result<Opened<SqlxTx>, SinkError> {
        check(fence)?;
        let lock_timeout = &self.bounds.lock_timeout;
        let sql = self.entering(fence, request, lock_timeout)?;
        let opened = async {
            let mut tx = SqlxTx::new(self.connection().await?);
            let begun = answered(self.bounds.answer(), tx.begin(sql)).await?;
            match begun {
                Ok(()) => Ok(Opened::Fresh(tx)),
                Err(error) => refused(error, fence, request).map(Opened::Replayed),
            }
        };
        blockers::named(self, fence, opened.await).await
    }

    /// BEGIN, and the call that enters: it raises the stored answer, since what BEGIN is sent with
    /// returns no rows.
    pub(super) fn entering(
        &self,
        fence: &Fence,
        request: Option<&Request>,
        lock_timeout: &str,
    ) -> Result<String, SinkError> {
        let digest = request.map(Request::digest).transpose()?;
        Ok(format!(
            "{begin}; SELECT fenced.refuse('ZF006', 'the request was answered before', answer) \
             FROM fenced.enter({resource}, {token}, {shared}, {claimed}, '{lock_timeout}', \
             '{idle}', {max_step}, {id}, {digest}) AS answer WHERE answer IS NOT NULL",
            begin = self.begin_sql,
            resource = text(&fence.resource),
            token = fence.token,
            shared = is_shared(fence),
            claimed = fence.claimed,
            idle = self.bounds.idle_timeout,
            max_step = or_null(self.bounds.max_step.map(|step| step.to_string())),
            id = or_null(request.map(|request| text(request.id()))),
            digest = or_null(digest.map(|digest| bytes(digest))),
        ))
    }

    /// A connection, in a bounded time.
    pub(super) async fn connection(&self) -> Result<PoolConnection<Postgres>, SinkError> {
        let limit = PgSink::CONNECTION_TIMEOUT;
        tokio::time::timeout(limit, self.pool.acquire())
            .await
            .map_err(|_| SinkError::Retry(NoConnection(limit).into()))?
            .map_err(|error| match error {
                Error::PoolClosed => SinkError::Backend(error.into_cause()),
                error => SinkError::Retry(error.into_cause()),
            })
    }
}

fn refused(error: Error, fence: &Fence, request: Option<&Request>) -> Result<Answer, SinkError> {
    match (error.said().map(|said| (said.code, said.detail)), request) {
        (Some(("ZF006", Some(answer))), _) => Ok(Answer::from_json(answer.to_owned())),
        (Some(("ZF005", _)), Some(request)) => Err(request.mismatch()),
        _ => Err(refusal::refused(error, fence)),
    }
}
