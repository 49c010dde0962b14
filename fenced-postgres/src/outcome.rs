use deadpool_postgres::Object;
use fenced_core::{Answer, Fate, Fence, Request, SinkError};
use tokio_postgres::Row;

use crate::bounds::answered;
use crate::open::{check, is_shared};
use crate::sink::heard;
use crate::{PgSink, refusal};

/// One statement, and so one snapshot: where it sees a newer claim, it sees all that older holders
/// have committed, since that claim waited for their transactions.
pub(crate) const FATE: &str = "SELECT request.digest, request.answer, fence.token, fence.shared, floor.token \
    FROM fenced.floor \
    LEFT JOIN fenced.request ON request.id = $1 \
    LEFT JOIN fenced.fence ON fence.resource = $2";

pub(crate) async fn outcome(sink: &PgSink, request: &Request) -> Result<Fate<Answer>, SinkError> {
    request.digest()?;
    request.fence().map_or(Ok(()), check)?;
    let client = sink.connection().await?;
    let answer = answered(sink.bounds.answer(), row(&client, request)).await;
    let row = heard(client, answer)?;
    Found {
        digest: row.get(0),
        answer: row.get(1),
        exclusive: row.get(2),
        shared: row.get(3),
        floor: row.get(4),
    }
    .fate(request)
}

async fn row(client: &Object, request: &Request) -> Result<Row, SinkError> {
    let select = client.prepare_cached(FATE).await.map_err(refusal::failed)?;
    let resource = request.fence().map(|fence| &fence.resource);
    let row = client.query_one(&select, &[&request.id(), &resource]).await;
    row.map_err(refusal::failed)
}

/// The row that [`FATE`] selects.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) digest: Option<Vec<u8>>,
    pub(crate) answer: Option<String>,
    pub(crate) exclusive: Option<i64>,
    pub(crate) shared: Option<i64>,
    pub(crate) floor: i64,
}

impl Found {
    pub(crate) fn fate(self, request: &Request) -> Result<Fate<Answer>, SinkError> {
        let has_passed = request.fence().is_some_and(|sent| self.has_passed(sent));
        match (self.digest, self.answer) {
            (Some(applied), _) if applied != request.digest()? => Err(request.mismatch()),
            (Some(_), Some(answer)) => Ok(Fate::Applied(Answer::from_json(answer))),
            _ if has_passed => Ok(Fate::Absent),
            _ => Ok(Fate::Unknown),
        }
    }

    /// Whether nothing that was sent under `sent` can be applied any more, nor was and was
    /// collected.
    fn has_passed(&self, sent: &Fence) -> bool {
        let against = if is_shared(sent) { None } else { self.shared };
        let token = sent.token.get();
        let newest = self.exclusive.max(against);
        newest.is_some_and(|newest| newest > token) && token >= self.floor
    }
}
