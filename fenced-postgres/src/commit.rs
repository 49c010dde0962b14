use fenced_core::{Answer, Fence, Outcome, Request, SinkError};
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use crate::bounds::answered;
use crate::pipeline::in_order;
use crate::refusal;
use crate::tx::PgTx;

pub(crate) const RECORD: &str = "INSERT INTO fenced.request (id, resource, token, digest, answer) \
    VALUES ($1, fenced.held($2), $3, $4, $5)";

pub(crate) const HELD: &str = "SELECT fenced.held($1)";
pub(crate) const STORED: &str = "SELECT digest, answer FROM fenced.request WHERE id = $1";

/// The request's row and COMMIT, in one round trip.
///
/// The row is last, and plain: a twin's makes it fail, and the COMMIT behind it roll back. So it
/// does in a transaction that was aborted before, whose COMMIT would look like success.
pub(crate) async fn commit(
    mut tx: PgTx,
    fence: &Fence,
    request: &Request,
    answer: Answer,
) -> Result<Outcome<Answer>, SinkError> {
    let digest = request.digest()?.as_slice();
    let record = tx.prepare_cached(RECORD).await.map_err(refusal::failed)?;
    let (id, token, json) = (request.id(), fence.token.get(), answer.as_json());
    let row: [&(dyn ToSql + Sync); 5] = [&id, &fence.resource, &token, &digest, &json];
    let committing = in_order(tx.execute(&record, &row), tx.batch_execute("COMMIT"));
    let Ok(done) = answered(tx.answer_within(), committing).await else {
        tx.give_up();
        return Err(request.ambiguous());
    };
    match ended(&mut tx, done) {
        Committed::Yes => Ok(Outcome::Applied(answer)),
        Committed::No(error) if refusal::is_twin(&error) => {
            // Where the row was refused before COMMIT could be sent.
            tx.roll_back();
            stored(&tx, request).await
        }
        Committed::No(error) => Err(refusal::refused(error, fence)),
        Committed::Unknown => Err(request.ambiguous()),
    }
}

/// COMMIT without a request, in one round trip with what fails if the transaction was aborted.
pub(crate) async fn commit_unnamed(mut tx: PgTx, fence: &Fence) -> Result<(), SinkError> {
    let held = tx.prepare_cached(HELD).await.map_err(refusal::failed)?;
    let resource: [&(dyn ToSql + Sync); 1] = [&fence.resource];
    let committing = in_order(tx.execute(&held, &resource), tx.batch_execute("COMMIT"));
    let Ok(done) = answered(tx.answer_within(), committing).await else {
        tx.give_up();
        return Err(SinkError::Ambiguous { request: None });
    };
    match ended(&mut tx, done) {
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

fn ended(
    tx: &mut PgTx,
    (last, commit): (Result<u64, Error>, Option<Result<(), Error>>),
) -> Committed {
    match (last, commit) {
        (Err(error), None) => Committed::No(error),
        // Refused in so many words, whereupon COMMIT rolls back, if it is executed at all.
        (Err(error), Some(commit)) if error.as_db_error().is_some() => {
            if commit.is_ok() {
                tx.ended();
            }
            Committed::No(error)
        }
        (Ok(_), Some(Ok(()))) => {
            tx.ended();
            Committed::Yes
        }
        (Ok(_), Some(Err(error))) if refusal::is_definite(&error) => {
            tx.ended();
            Committed::No(error)
        }
        _ => Committed::Unknown,
    }
}

/// What a twin, which committed first, was answered.
async fn stored(tx: &PgTx, request: &Request) -> Result<Outcome<Answer>, SinkError> {
    let select = tx.prepare_cached(STORED).await.map_err(refusal::failed)?;
    let row = tx.query_opt(&select, &[&request.id()]).await;
    let Some(row) = row.map_err(refusal::failed)? else {
        return Err(refusal::collected_twin());
    };
    if row.get::<_, &[u8]>(0) != request.digest()? {
        return Err(request.mismatch());
    }
    Ok(Outcome::Replayed(Answer::from_json(
        row.get::<_, String>(1),
    )))
}
