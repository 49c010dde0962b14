use fenced_core::{Answer, Fence, Mode, Opened, Request, SinkError};

use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use crate::bounds::answered;
use crate::commit::{HELD, RECORD};
use crate::pipeline::in_order;
use crate::refusal::{self, Misuse};
use crate::tx::PgTx;
use crate::{PgSink, blockers};

const ENTER: &str = "SELECT fenced.enter($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// The longest name of a resource, in bytes; an index takes no more than 2,700.
const MAX_RESOURCE_BYTES: usize = 1_024;

impl PgSink {
    /// BEGIN, the fence, and the request's stored answer, in one round trip.
    pub(crate) async fn open(
        &self,
        fence: &Fence,
        request: Option<&Request>,
    ) -> Result<Opened<PgTx>, SinkError> {
        check(fence)?;
        if let Some(request) = request {
            request.digest()?;
        }
        let opened = async {
            let tx = PgTx::new(self.connection().await?, self.bounds.answer());
            let entering = self.enter(&tx, fence, request, &self.bounds.lock_timeout);
            match answered(tx.answer_within(), entering).await {
                Ok(stored) => Ok(stored?.map_or(Opened::Fresh(tx), Opened::Replayed)),
                Err(silent) => {
                    tx.give_up();
                    Err(silent.into())
                }
            }
        };
        blockers::named(self, fence, opened.await).await
    }

    /// Begins a transaction on `tx`'s connection, and enters.
    pub(crate) async fn enter(
        &self,
        tx: &PgTx,
        fence: &Fence,
        request: Option<&Request>,
        lock_timeout: &str,
    ) -> Result<Option<Answer>, SinkError> {
        // The commit's statement is prepared now, together, since later may be too late.
        let last = if request.is_some() { RECORD } else { HELD };
        let (enter, _) = tokio::try_join!(tx.prepare_cached(ENTER), tx.prepare_cached(last))
            .map_err(refusal::failed)?;
        let entered = self.send(tx, &enter, fence, request, lock_timeout).await?;
        match (entered, request) {
            (Ok(row), _) => Ok(row.get::<_, Option<String>>(0).map(Answer::from_json)),
            (Err(error), Some(request)) if refusal::is_mismatch(&error) => Err(request.mismatch()),
            (Err(error), _) => Err(refusal::refused(error, fence)),
        }
    }

    async fn send(
        &self,
        tx: &PgTx,
        enter: &Statement,
        fence: &Fence,
        request: Option<&Request>,
        lock_timeout: &str,
    ) -> Result<Result<Row, Error>, SinkError> {
        let digest = request.map(Request::digest).transpose()?;
        let (id, digest) = (request.map(Request::id), digest.map(<[u8; 32]>::as_slice));
        let (token, shared) = (fence.token.get(), is_shared(fence));
        let parameters: [&(dyn ToSql + Sync); 9] = [
            &fence.resource,
            &token,
            &shared,
            &fence.claimed,
            &lock_timeout,
            &self.bounds.idle_timeout,
            &self.bounds.max_step,
            &id,
            &digest,
        ];
        let begin = tx.batch_execute(self.begin_sql);
        Ok(
            match in_order(begin, tx.query_one(enter, &parameters)).await {
                (Err(error), _) | (_, Some(Err(error))) => Err(error),
                (Ok(()), Some(Ok(row))) => Ok(row),
                (Ok(()), None) => return Err(Misuse::Aborted.into()),
            },
        )
    }
}

pub(crate) fn is_shared(fence: &Fence) -> bool {
    fence.mode == Mode::Shared
}

/// A fence may come from another service.
pub(crate) fn check(fence: &Fence) -> Result<(), SinkError> {
    let reason = match fence.resource.as_str() {
        "" => "it is empty",
        name if name.len() > MAX_RESOURCE_BYTES => "it is longer than 1024 bytes",
        name if name.chars().any(char::is_control) => "it holds a control character",
        _ => return Ok(()),
    };
    let resource = fence.resource.escape_debug().take(80).collect();
    Err(Misuse::Resource { resource, reason }.into())
}
