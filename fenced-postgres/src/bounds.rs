use std::time::Duration;

use crate::PgSink;

/// What the server is told at the start of a fenced transaction.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// In milliseconds, as the server takes it.
    pub(crate) lock_timeout: String,
    /// In milliseconds, as the server takes it.
    pub(crate) idle_timeout: String,
    pub(crate) max_step: Option<i64>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            lock_timeout: milliseconds(PgSink::LOCK_TIMEOUT),
            idle_timeout: milliseconds(PgSink::IDLE_IN_TRANSACTION_TIMEOUT),
            max_step: None,
        }
    }
}

pub(crate) fn milliseconds(timeout: Duration) -> String {
    // Zero would mean no limit.
    let longest = i32::MAX.unsigned_abs().into();
    timeout.as_millis().clamp(1, longest).to_string()
}
