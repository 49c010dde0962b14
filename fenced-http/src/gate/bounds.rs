use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What keeps a gate from growing, and from waiting, for ever.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) max_step: u64,
    pub(crate) busy_timeout: Duration,
    pub(crate) max_resources: usize,
    pub(crate) max_answer_bytes: usize,
    pub(crate) keep: Duration,
}

/// What a bound that was reached says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Full {
    #[error("the gate knows {0} resources, as many as it may: collect old ones, or allow it more")]
    Resources(usize),
    #[error(
        "the gate keeps {0} bytes of answers, as many as it may: collect old ones, keep them for a shorter time, or allow it more"
    )]
    Answers(usize),
}

/// In seconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
