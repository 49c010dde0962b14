use fenced_core::{Answer, Fate, Fence, Mode, Request, SinkError};
use redis::Value;

use crate::batch::milliseconds;
use crate::kept::Kept;
use crate::refusal;
use crate::script;
use crate::sink::{Connection, RedisSink};

pub(crate) async fn outcome<C: Connection>(
    sink: &RedisSink<C>,
    request: &Request,
) -> Result<Fate<Answer>, SinkError> {
    request.digest()?;
    let place = sink.tags.place_of_request(request)?;
    let resource = request.fence().map_or("", |sent| &sent.resource);
    let mut command = script::OUTCOME.command(4, 256);
    command
        .arg(2)
        .arg(&place.fences)
        .arg(place.request(request.id()));
    command.arg(resource);
    let answer = sink.ask(&script::OUTCOME, &command).await;
    let Value::Array(row) = answer.map_err(refusal::of_other)? else {
        return Err(SinkError::backend("the server replied what no script does"));
    };
    if let Some(Value::BulkString(kept)) = row.first() {
        return Kept::read(kept, request).map(Fate::Applied);
    }
    let passed = request.fence().is_some_and(|sent| {
        let seen = Seen::read(&row[1..]);
        seen.is_some_and(|seen| seen.rules_out(sent, milliseconds(sink.keep_requests)))
    });
    Ok(if passed { Fate::Absent } else { Fate::Unknown })
}

/// What the server knows of a resource, as `raise.lua` keeps it.
struct Seen {
    exclusive: i64,
    shared: i64,
    floor: i64,
    /// Tokens above the first number came after the second, in milliseconds.
    since: [(i64, i64); 2],
    now: i64,
}

impl Seen {
    fn read(row: &[Value]) -> Option<Self> {
        let [fence, seen, floor, now] = row else {
            return None;
        };
        let fence = text(fence)?;
        let (exclusive, shared) = fence.split_once('/').unwrap_or((fence, "0"));
        let mut seen = text(seen)?.split(' ').map(|number| number.parse().ok());
        let mut next = || seen.next().flatten();
        Some(Self {
            exclusive: exclusive.parse().ok()?,
            shared: shared.parse().ok()?,
            floor: text(floor).map_or(Some(0), |floor| floor.parse().ok())?,
            since: [(next()?, next()?), (next()?, next()?)],
            now: text(now)?.parse().ok()?,
        })
    }

    /// Whether nothing that was sent under `sent` can be applied any more, nor was, and has expired
    /// or was collected since.
    fn rules_out(&self, sent: &Fence, kept_for: i64) -> bool {
        let mine = sent.token.get();
        let newest = match sent.mode {
            Mode::Shared => self.exclusive,
            _ => self.exclusive.max(self.shared),
        };
        let all_kept = |&(token, at): &(i64, i64)| mine > token && self.now - at < kept_for;
        newest > mine && mine >= self.floor && self.since.iter().any(all_kept)
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use fenced_core::FencingToken;

    use super::*;

    const DAY: i64 = 86_400_000;

    fn seen(fence: &str, since: &str, now: i64) -> Seen {
        let bulk = |text: String| Value::BulkString(text.into_bytes());
        Seen::read(&[
            bulk(fence.to_owned()),
            bulk(since.to_owned()),
            Value::Nil,
            bulk(now.to_string()),
        ])
        .unwrap()
    }

    fn fence(token: i64) -> Fence {
        Fence::new("/a", FencingToken::try_from(token).unwrap())
    }

    #[test]
    fn only_what_cannot_have_expired_is_ruled_out() {
        let now = 10 * DAY;
        let since = format!("10 {} 20 {}", now - 2 * DAY, now - DAY / 4);
        let seen = seen("34", &since, now);
        assert!(seen.rules_out(&fence(33), DAY));
        assert!(seen.rules_out(&fence(21), DAY));
        assert!(
            !seen.rules_out(&fence(20), DAY),
            "may have been here long ago"
        );
        assert!(!seen.rules_out(&fence(34), DAY), "is the newest");
        assert!(!seen.rules_out(&fence(33), DAY / 4), "may have expired");
        assert!(seen.rules_out(&fence(11), 3 * DAY));
        assert!(!seen.rules_out(&fence(10), 3 * DAY));
    }

    #[test]
    fn a_newer_reader_rules_out_writers_only() {
        let seen = seen("30/34", "0 5 0 5", 6);
        let mut reader = fence(33);
        assert!(seen.rules_out(&reader, DAY));
        reader.mode = Mode::Shared;
        assert!(!seen.rules_out(&reader, DAY));
    }
}
