use fenced_core::{FencingToken, SinkError};
use redis::{Value, from_redis_value};

use crate::refusal;
use crate::script;
use crate::sink::{Connection, RedisSink};

/// How much was collected. Requests expire by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Fences.
    pub fences: u64,
}

impl<C: Connection> RedisSink<C> {
    /// Deletes the fences of tokens below `floor`, and remembers the floor in their place, so that
    /// an older holder stays refused.
    ///
    /// Choose a floor that is older than every holder that may still run: one below it is stale. It
    /// takes a round trip for every few hundred fences, and with [`tag_by`](Self::tag_by) one for
    /// each of the 16,384 slots.
    ///
    /// # Errors
    /// [`SinkError::Retry`] and [`SinkError::Backend`]: some were collected; collect again.
    ///
    /// # Cancel safety
    /// Some are collected; nothing is lost.
    pub async fn collect(&self, floor: FencingToken) -> Result<Collected, SinkError> {
        let mut collected = Collected::default();
        for fences in self.tags.all_fences()? {
            let mut cursor = "0".to_owned();
            loop {
                let mut command = script::COLLECT.command(4, 128);
                command.arg(1).arg(&fences).arg(floor.get()).arg(&cursor);
                let answer = self.ask(&script::COLLECT, &command).await;
                let (next, count) = page(answer.map_err(refusal::of_other)?)?;
                collected.fences += count;
                if next == "0" {
                    break;
                }
                cursor = next;
            }
        }
        Ok(collected)
    }

    /// Sets the fence of a resource to `newest`, lower than it is, after its lock service has lost
    /// its data and gives out tokens that are lower than before. What it was, and why it was reset,
    /// is kept in the stream `resets` beside the fences.
    ///
    /// Until then every holder is refused, which is safe. Make sure first that no holder of an old
    /// token runs any more: one that does is accepted again.
    ///
    /// # Errors
    /// [`SinkError::Backend`], as for an empty `reason`; [`SinkError::Retry`]: reset again.
    ///
    /// # Cancel safety
    /// It happens wholly or not at all.
    pub async fn reset(
        &self,
        resource: &str,
        newest: FencingToken,
        reason: &str,
    ) -> Result<(), SinkError> {
        if reason.trim().is_empty() {
            return Err(SinkError::backend("a reset needs a reason, which is kept"));
        }
        let place = self.tags.place_of(resource)?;
        let mut command = script::RESET.command(7, 256);
        command.arg(2).arg(&place.fences).arg(place.resets());
        command
            .arg(resource)
            .arg(newest.get())
            .arg(reason)
            .arg(i64::MAX);
        let answer = self.ask(&script::RESET, &command).await;
        answer.map_err(refusal::of_other)?;
        tracing::warn!(resource, token = %newest, reason, "fence reset");
        Ok(())
    }
}

fn page(answer: Value) -> Result<(String, u64), SinkError> {
    from_redis_value(answer).map_err(SinkError::backend)
}
