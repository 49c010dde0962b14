use fenced_core::{Answer, Fence, Outcome, Request, SinkError};
use sqlx::Error;

use super::literal::{bytes, text};
use super::tx::SqlxTx;
use crate::bounds::{Bounds, answered};
use crate::commit::STORED;
use crate::refusal;

/// The request's row and COMMIT, in one round trip; see `crate::commit`.
pub(super) async fn commit(
    mut tx: SqlxTx,
    bounds: &Bounds,
    fence: &Fence,
    request: &Request,
    answer: Answer,
) -> Result<Outcome<Answer>, SinkError> {
    let record = format!(
        "INSERT INTO fenced.request (id, resource, token, digest, answer) \
         VALUES ({}, fenced.held({}), {}, {}, {})",
        text(request.id()),
        text(&fence.resource),
        fence.token,
        bytes(request.digest()?),
        text(answer.as_json()),
    );
    match ended(bounds, tx.commit_after(&record)).await {
        Committed::Yes => Ok(Outcome::Applied(answer)),
        Committed::No(error) if refusal::is_twin(&error) => {
            tx.roll_back().await.map_err(refusal::failed)?;
            stored(&mut tx, request).await
        }
        Committed::No(error) => Err(refusal::refused(error, fence)),
        Committed::Unknown => Err(request.ambiguous()),
    }
}

/// COMMIT without a request, in one round trip with what fails if the transaction was aborted.
pub(super) async fn commit_unnamed(
    mut tx: SqlxTx,
    bounds: &Bounds,
    fence: &Fence,
) -> Result<(), SinkError> {
    let held = format!("SELECT fenced.held({})", text(&fence.resource));
    match ended(bounds, tx.commit_after(&held)).await {
        Committed::Yes => Ok(()),
        Committed::No(error) => Err(refusal::refused(error, fence)),
        Committed::Unknown => Err(SinkError::Ambiguous { request: None }),
    }
}

enum Committed {
    Yes,
    No(Error),
    Unknown,
}

async fn ended(bounds: &Bounds, committing: impl Future<Output = Result<(), Error>>) -> Committed {
    match answered(bounds.answer(), committing).await {
        Ok(Ok(())) => Committed::Yes,
        Ok(Err(error)) if refusal::is_definite(&error) => Committed::No(error),
        Ok(Err(_)) | Err(_) => Committed::Unknown,
    }
}

/// What a twin, which committed first, was answered.
async fn stored(tx: &mut SqlxTx, request: &Request) -> Result<Outcome<Answer>, SinkError> {
    let select = sqlx::query_as::<_, (Vec<u8>, String)>(STORED).bind(request.id());
    let row = select.fetch_optional(&mut **tx).await;
    let Some((digest, answer)) = row.map_err(refusal::failed)? else {
        return Err(refusal::collected_twin());
    };
    if digest != request.digest()? {
        return Err(request.mismatch());
    }
    Ok(Outcome::Replayed(Answer::from_json(answer)))
}
