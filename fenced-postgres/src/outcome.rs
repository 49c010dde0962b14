use deadpool_postgres::Object;
use fenced_core::{Answer, Fate, Fence, Request, SinkError};
use tokio_postgres::Row;

use crate::bounds::answered;
use crate::open::{check, is_shared};
use crate::sink::heard;
use crate::{PgSink, refusal};

/// One statement, and so one snapshot: where it sees a newer claim, it sees all that older holders
/// have committed, since that claim waited for their transactions.
const FATE: &str = "SELECT request.digest, request.answer, fence.token, fence.shared, floor.token \
    FROM fenced.floor \
    LEFT JOIN fenced.request ON request.id = $1 \
    LEFT JOIN fenced.fence ON fence.resource = $2";

pub(crate) async fn outcome(sink: &PgSink, request: &Request) -> Result<Fate<Answer>, SinkError> {
    let digest = request.digest()?;
    let sent = request.fence();
    sent.map_or(Ok(()), check)?;
    let client = sink.connection().await?;
    let answer = answered(sink.bounds.answer(), row(&client, request)).await;
    let row = heard(client, answer)?;
    match row.get::<_, Option<&[u8]>>(0) {
        Some(applied) if applied != digest => Err(request.mismatch()),
        Some(_) => Ok(Fate::Applied(Answer::from_json(row.get::<_, String>(1)))),
        None if sent.is_some_and(|sent| has_passed(sent, &row)) => Ok(Fate::Absent),
        None => Ok(Fate::Unknown),
    }
}

async fn row(client: &Object, request: &Request) -> Result<Row, SinkError> {
    let select = client.prepare_cached(FATE).await.map_err(refusal::failed)?;
    let resource = request.fence().map(|fence| &fence.resource);
    let row = client.query_one(&select, &[&request.id(), &resource]).await;
    row.map_err(refusal::failed)
}

/// Whether nothing that was sent under `sent` can be applied any more, nor was and was collected.
fn has_passed(sent: &Fence, row: &Row) -> bool {
    let (exclusive, shared): (Option<i64>, Option<i64>) = (row.get(2), row.get(3));
    let against = if is_shared(sent) { None } else { shared };
    let (token, floor) = (sent.token.get(), row.get::<_, i64>(4));
    exclusive.max(against).is_some_and(|newest| newest > token) && token >= floor
}
