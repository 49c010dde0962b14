use std::fmt;
use std::future::Future;
use std::pin::Pin;

use fenced_core::{Answer, SinkError};
use serde::Serialize;

/// What is done behind a [`Gate`](crate::Gate) of this process; its value is the answer.
#[must_use = "nothing is done yet"]
pub struct Effect(Pin<Box<dyn Future<Output = Result<Answer, SinkError>> + Send>>);

impl Effect {
    /// Does this, to its end: it is not dropped when its caller is.
    pub fn new<A: Serialize>(
        effect: impl Future<Output = Result<A, SinkError>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(async move { Answer::of(&effect.await?) }))
    }

    pub(crate) async fn take(self) -> Result<Answer, SinkError> {
        self.0.await
    }
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Effect")
    }
}
