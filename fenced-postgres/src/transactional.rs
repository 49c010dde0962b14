use std::ops::Deref;

use async_trait::async_trait;
use fenced_core::{Answer, Fence, Opened, Outcome, Request, SinkError, TransactionalSink};

use crate::PgSink;
use crate::commit::{commit, commit_unnamed};
use crate::tx::PgTx;

/// The transaction of a [`TransactionalSink`]: it holds a fence that came from elsewhere, and is
/// committed by whoever opened it. It derefs to [`PgTx`], for statements.
///
/// # Cancel safety
/// Dropping it rolls back, before anybody else's statement on its connection.
#[derive(Debug)]
#[must_use = "a transaction that is dropped is rolled back"]
pub struct PassedTx {
    tx: PgTx,
    fence: Fence,
    request: Option<Request>,
}

impl PassedTx {
    /// The fence that it holds.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.fence
    }
}

impl Deref for PassedTx {
    type Target = PgTx;

    fn deref(&self) -> &PgTx {
        &self.tx
    }
}

#[async_trait]
impl TransactionalSink for PgSink {
    type Transaction = PassedTx;

    async fn open(
        &self,
        fence: &Fence,
        request: Option<&Request>,
    ) -> Result<Opened<PassedTx>, SinkError> {
        Ok(match self.open(fence, request).await? {
            Opened::Replayed(answer) => Opened::Replayed(answer),
            Opened::Fresh(tx) => Opened::Fresh(PassedTx {
                tx,
                fence: fence.clone(),
                request: request.cloned(),
            }),
        })
    }

    async fn commit(
        &self,
        transaction: PassedTx,
        answer: Answer,
    ) -> Result<Outcome<Answer>, SinkError> {
        let PassedTx { tx, fence, request } = transaction;
        if let Some(request) = request {
            return commit(tx, &fence, &request, answer).await;
        }
        commit_unnamed(tx, &fence).await?;
        Ok(Outcome::Applied(answer))
    }
}
