use fenced_core::{Answer, Fence, Outcome, Request, SinkError};
use redis::{Cmd, Value};

use crate::batch::milliseconds;
use crate::kept::Kept;
use crate::keys::{Place, shown};
use crate::script::{self, Script};
use crate::sink::{Connection, RedisSink};
use crate::{RedisBatch, RedisCall, refusal};

/// What one write to a [`RedisSink`](crate::RedisSink) consists of: a [`RedisBatch`], or a
/// [`RedisCall`].
#[derive(Clone, Debug)]
#[must_use = "it says what to write, and writes nothing"]
pub struct RedisWrite(What);

#[derive(Clone, Debug)]
enum What {
    Batch(RedisBatch),
    Call(RedisCall),
}

impl From<RedisBatch> for RedisWrite {
    fn from(batch: RedisBatch) -> Self {
        Self(What::Batch(batch))
    }
}

impl From<RedisCall> for RedisWrite {
    fn from(call: RedisCall) -> Self {
        Self(What::Call(call))
    }
}

impl RedisWrite {
    fn keys(&self) -> Vec<&[u8]> {
        match &self.0 {
            What::Batch(batch) => batch.keys().collect(),
            What::Call(call) => call.keys().collect(),
        }
    }

    fn check(&self, keys: &[&[u8]], place: &Place<'_>) -> Result<(), SinkError> {
        keys.iter().try_for_each(|key| place.check(key))?;
        match &self.0 {
            What::Batch(batch) => batch.check(),
            What::Call(_) => Ok(()),
        }
    }

    fn script(&self, named: bool) -> &Script {
        match &self.0 {
            What::Call(call) => call.script(named),
            What::Batch(batch) if batch.is_one_set() => {
                if named {
                    &script::SET_NAMED
                } else {
                    &script::SET
                }
            }
            What::Batch(batch) => match (batch.can_fail(), named) {
                (false, false) => &script::APPLY,
                (false, true) => &script::APPLY_NAMED,
                (true, false) => &script::CHECK_AND_APPLY,
                (true, true) => &script::CHECK_AND_APPLY_NAMED,
            },
        }
    }

    fn write_arguments(&self, command: &mut Cmd) {
        match &self.0 {
            What::Batch(batch) => batch.write_arguments(command),
            What::Call(call) => call.write_arguments(command),
        }
    }

    /// The key of the operation that did not fit, counted from one.
    fn key_of(&self, number: usize) -> String {
        let keys = self.keys();
        let key = number.checked_sub(1).and_then(|index| keys.get(index));
        key.map_or_else(String::new, |key| shown(key))
    }
}

impl<C: Connection> RedisSink<C> {
    /// One write, whose request and answer are kept if it has one.
    pub(crate) async fn send(
        &self,
        fence: &Fence,
        request: Option<&Request>,
        write: &RedisWrite,
    ) -> Result<Outcome<Answer>, SinkError> {
        let place = self.tags.place(fence)?;
        let (script, keys) = (write.script(request.is_some()), write.keys());
        write.check(&keys, &place)?;
        let named = request.map(|request| place.request(request.id()));
        let mut command = script.command(16, 512);
        command.arg(1 + usize::from(named.is_some()) + keys.len());
        command.arg(&place.fences).arg(named).arg(keys);
        let claimed = fence.claimed || self.strict;
        self.write_fence(&mut command, fence, claimed);
        if let Some(request) = request {
            command.arg(Kept::head(request, fence)?);
            command.arg(milliseconds(self.keep_requests));
        }
        write.write_arguments(&mut command);
        let ambiguous = || SinkError::Ambiguous {
            request: request.map(|request| request.id().to_owned()),
        };
        match self.ask(script, &command).await {
            Ok(Value::BulkString(answer)) => Ok(Outcome::Applied(Kept::answer(&answer))),
            Ok(Value::Array(kept)) => Kept::read_reply(&kept, request).map(Outcome::Replayed),
            Ok(_) => Err(ambiguous()),
            Err(refused) => {
                let key_of = |number| write.key_of(number);
                Err(refusal::of_write(
                    refused, fence, request, key_of, ambiguous,
                ))
            }
        }
    }
}
