use fenced_core::{FencingToken, SinkError};

use crate::SqliteSink;
use crate::thread::Caller;
use crate::writer::Writer;

/// How many rows were collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Fences.
    pub fences: u64,
    /// Requests with their answers.
    pub requests: u64,
}

impl SqliteSink {
    /// Deletes the fences and requests of tokens below `floor`, and remembers the floor in their
    /// place, so that an older holder stays refused.
    ///
    /// Choose a floor that is older than every holder that may still run, and than every request
    /// that may still be repeated: a holder below it is stale, and a request below it would be
    /// applied again. Other writers of the file wait meanwhile.
    ///
    /// # Errors
    /// [`SinkError::Busy`] and [`SinkError::Backend`]: nothing was deleted.
    /// [`SinkError::Ambiguous`], if the disk failed at the commit: collect again.
    ///
    /// # Cancel safety
    /// It happens wholly or not at all.
    pub async fn collect(&self, floor: FencingToken) -> Result<Collected, SinkError> {
        let file = self.file().display().to_string();
        let work = move |writer: &Writer, caller: &Caller<'_>| writer.collect(caller, floor);
        self.writer().submit(file, work).await?
    }
}
