use std::future::Future;
use std::time::Duration;

use fenced_core::SinkError;

use crate::PgSink;

/// How long a fenced transaction may take for what it does not do itself.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// In milliseconds, as the server takes it.
    pub(crate) lock_timeout: String,
    /// In milliseconds, as the server takes it.
    pub(crate) idle_timeout: String,
    pub(crate) max_step: Option<i64>,
    lock: Duration,
    answer: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            lock_timeout: milliseconds(PgSink::LOCK_TIMEOUT),
            idle_timeout: milliseconds(PgSink::IDLE_IN_TRANSACTION_TIMEOUT),
            max_step: None,
            lock: PgSink::LOCK_TIMEOUT,
            answer: PgSink::ANSWER_TIMEOUT,
        }
    }
}

impl Bounds {
    pub(crate) fn wait_for_lock(&mut self, timeout: Duration) {
        self.lock_timeout = milliseconds(timeout);
        self.lock = timeout;
    }

    pub(crate) fn stay_idle(&mut self, timeout: Duration) {
        self.idle_timeout = milliseconds(timeout);
    }

    pub(crate) fn wait_for_answer(&mut self, timeout: Duration) {
        self.answer = timeout;
    }

    /// The longest that an answer may take to a statement that waits for locks.
    pub(crate) fn answer(&self) -> Duration {
        self.lock.saturating_add(self.answer)
    }
}

/// A server, or the network before it, that does not answer.
#[derive(Debug, thiserror::Error)]
#[error(
    "the server did not answer within {0:?}, so that its connection was given up: look at the network, or allow more time"
)]
pub(crate) struct Silent(Duration);

impl From<Silent> for SinkError {
    fn from(silent: Silent) -> Self {
        Self::Retry(silent.into())
    }
}

pub(crate) async fn answered<T>(
    limit: Duration,
    call: impl Future<Output = T>,
) -> Result<T, Silent> {
    let answer = tokio::time::timeout(limit, call).await;
    answer.map_err(|_| Silent(limit))
}

fn milliseconds(timeout: Duration) -> String {
    // Zero would mean no limit.
    let longest = i32::MAX.unsigned_abs().into();
    timeout.as_millis().clamp(1, longest).to_string()
}
