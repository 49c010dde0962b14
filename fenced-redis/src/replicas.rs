use std::time::Duration;

use fenced_core::{Fence, SinkError};
use redis::{Cmd, RedisResult, Value};

use crate::batch::milliseconds;
use crate::refusal::{self, Refused};
use crate::sink::{Connection, RedisSink};

#[derive(Debug, thiserror::Error)]
#[error("only {have} of {wanted} replicas have the claim: see whether they are connected")]
struct TooFew {
    have: i64,
    wanted: usize,
}

/// Claims, and waits for replicas over the very connection that claimed: another one would not
/// know what to wait for.
pub(crate) async fn claim<C: Connection>(
    sink: &RedisSink<C>,
    fence: &Fence,
    claim: Cmd,
    wanted: usize,
    within: Duration,
) -> Result<(), SinkError> {
    let mut both = redis::pipe();
    both.add_command(claim);
    both.cmd("WAIT").arg(wanted).arg(milliseconds(within));
    both.ignore_errors();
    let mut connection = sink.connection.clone();
    let answers = sink.within_limit(both.query_async(&mut connection));
    let (claimed, have): (RedisResult<Value>, RedisResult<i64>) = answers
        .await
        .map_err(|refused| refusal::of_claim(refused, fence))?;
    claimed.map_err(|error| refusal::of_claim(Refused::Failed(error), fence))?;
    let have = have.map_err(|error| refusal::of_other(Refused::Failed(error)))?;
    if usize::try_from(have).is_ok_and(|have| have >= wanted) {
        return Ok(());
    }
    Err(SinkError::Retry(TooFew { have, wanted }.into()))
}
