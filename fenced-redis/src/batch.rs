use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use fenced_core::SinkError;
use redis::Cmd;

use crate::keys::shown;

/// Operations that are applied together or not at all.
///
/// They are answered, in order, with what Redis says: a sum, how many fields or keys there are
/// more or fewer, 1 for a value that was set. Every key of a sink with a
/// [tag](crate::RedisSink::tag) has to have that tag.
///
/// Whatever can be wrong with the data is found before the first of them. The user of the
/// connection needs the right to every command that they stand for (`SET`, `INCRBY`, `HSET`,
/// `HINCRBY`, `DEL`), for the server looks at that only when it is its turn.
///
/// ```
/// use fenced_redis::RedisBatch;
///
/// let sell = RedisBatch::new()
///     .incr("{4711}:count", -2)
///     .hset("{4711}:orders", "order-17", "2 pieces");
/// # drop(sell);
/// ```
#[derive(Clone, Default)]
#[must_use = "it says what to write, and writes nothing"]
pub struct RedisBatch {
    operations: Vec<Operation>,
}

#[derive(Clone)]
struct Operation {
    key: Vec<u8>,
    change: Change,
}

#[derive(Clone)]
enum Change {
    Set(Vec<u8>),
    SetFor(Vec<u8>, Duration),
    Incr(i64),
    HSet(Vec<u8>, Vec<u8>),
    HIncr(Vec<u8>, i64),
    Del,
}

impl RedisBatch {
    /// No operation yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a value, whatever was there, and for good.
    pub fn set(self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        self.and(key, Change::Set(value.into()))
    }

    /// Sets a value that is deleted after a time, in whole milliseconds, of which it takes at least
    /// one. The fence stays.
    pub fn set_for(
        self,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        time: Duration,
    ) -> Self {
        self.and(key, Change::SetFor(value.into(), time))
    }

    /// Adds to a whole number, which is zero at first.
    pub fn incr(self, key: impl Into<Vec<u8>>, amount: i64) -> Self {
        self.and(key, Change::Incr(amount))
    }

    /// Sets a field of a hash.
    pub fn hset(
        self,
        key: impl Into<Vec<u8>>,
        field: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
    ) -> Self {
        self.and(key, Change::HSet(field.into(), value.into()))
    }

    /// Adds to a whole number in a field of a hash, which is zero at first.
    pub fn hincr(self, key: impl Into<Vec<u8>>, field: impl Into<Vec<u8>>, amount: i64) -> Self {
        self.and(key, Change::HIncr(field.into(), amount))
    }

    /// Deletes a key, whatever was there. The fence stays.
    pub fn del(self, key: impl Into<Vec<u8>>) -> Self {
        self.and(key, Change::Del)
    }

    fn and(mut self, key: impl Into<Vec<u8>>, change: Change) -> Self {
        let key = key.into();
        self.operations.push(Operation { key, change });
        self
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.operations.iter().map(|operation| &*operation.key)
    }

    pub(crate) fn is_one_set(&self) -> bool {
        matches!(&self.operations[..], [one] if matches!(one.change, Change::Set(_)))
    }

    /// Whether the script has to look at what is there before it writes.
    pub(crate) fn can_fail(&self) -> bool {
        self.operations
            .iter()
            .any(|operation| operation.change.can_fail())
    }

    /// The check looks at what was there before the batch, and so cannot tell what one operation
    /// leaves for another one.
    pub(crate) fn check(&self) -> Result<(), SinkError> {
        if self.operations.len() < 2 {
            return Ok(());
        }
        let mut whole = HashSet::new();
        let mut fields = HashSet::new();
        for Operation { key, change } in &self.operations {
            let is_new = match change.field() {
                Some(field) => fields.insert((key, field)),
                None => whole.insert(key),
            };
            if !is_new {
                return Err(SinkError::backend(Twice(shown(key))));
            }
        }
        match fields.iter().find(|(key, _)| whole.contains(key)) {
            Some((key, _)) => Err(SinkError::backend(Twice(shown(key)))),
            None => Ok(()),
        }
    }

    pub(crate) fn write_arguments(&self, command: &mut Cmd) {
        for operation in &self.operations {
            operation.change.write_arguments(command);
        }
    }
}

/// A key, or a field of a hash, that a batch changes more than once.
#[derive(Debug, thiserror::Error)]
#[error(
    "a batch changes `{0}` twice, and a key that is not a hash may be changed once: join the operations, or use a script"
)]
struct Twice(String);

impl Change {
    fn can_fail(&self) -> bool {
        match self {
            Self::Incr(_) | Self::HSet(..) | Self::HIncr(..) => true,
            Self::Set(_) | Self::SetFor(..) | Self::Del => false,
        }
    }

    fn field(&self) -> Option<&[u8]> {
        match self {
            Self::HSet(field, _) | Self::HIncr(field, _) => Some(field),
            Self::Set(_) | Self::SetFor(..) | Self::Incr(_) | Self::Del => None,
        }
    }

    fn write_arguments(&self, command: &mut Cmd) {
        match self {
            Self::Set(value) => command.arg("set").arg(value),
            Self::SetFor(value, time) => command.arg("set_for").arg(value).arg(milliseconds(*time)),
            Self::Incr(amount) => command.arg("incr").arg(amount),
            Self::HSet(field, value) => command.arg("hset").arg(field).arg(value),
            Self::HIncr(field, amount) => command.arg("hincr").arg(field).arg(amount),
            Self::Del => command.arg("del"),
        };
    }
}

/// What Redis takes for an expiry: it adds that to the time of day, in 64 bits.
pub(crate) fn milliseconds(time: Duration) -> i64 {
    const LONGEST: i64 = i64::MAX / 4;
    i64::try_from(time.as_millis()).map_or(LONGEST, |millis| millis.clamp(1, LONGEST))
}

/// Values may be secret.
impl fmt::Debug for RedisBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys().map(shown);
        f.debug_list().entries(keys).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_changed_once() {
        let twice = [
            RedisBatch::new().set("k", "x").incr("k", 1),
            RedisBatch::new().incr("k", 1).incr("k", 1),
            RedisBatch::new().hset("k", "f", "x").hincr("k", "f", 1),
            RedisBatch::new().hset("k", "f", "x").del("k"),
            RedisBatch::new().set("k", "x").hset("k", "f", "x"),
        ];
        for batch in twice {
            let error = batch.check().unwrap_err();
            assert!(error.to_string().contains("`k` twice"), "{error}");
        }
        let once = RedisBatch::new()
            .set("a", "x")
            .del("b")
            .hset("k", "f", "x")
            .hincr("k", "g", 1);
        once.check().unwrap();
        RedisBatch::new().check().unwrap();
    }

    #[test]
    fn times_are_what_the_server_takes() {
        assert_eq!(milliseconds(Duration::ZERO), 1);
        assert_eq!(milliseconds(Duration::from_micros(1_999)), 1);
        assert!(milliseconds(Duration::MAX) < i64::MAX / 2);
    }

    #[test]
    fn values_are_not_shown() {
        let batch = RedisBatch::new().set("k\n", "secret");
        assert_eq!(format!("{batch:?}"), r#"["k\\n"]"#);
    }
}
