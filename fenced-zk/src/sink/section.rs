use fenced_core::{Fenced, SinkError};

use super::ZkSink;
use super::record::read;
use super::write::path;
use crate::locks::Away;

/// What a section does with a [`ZkSink`] beside writing; in the prelude.
pub trait ZkFenced {
    /// The data of a node, if it is there, after the fence was raised: no older holder changes the
    /// node any more.
    ///
    /// # Errors
    /// As [`Fenced::claim`]; [`SinkError::Retry`] if there was no answer.
    ///
    /// # Cancel safety
    /// The fence may have been raised, which harms nobody but older holders.
    fn read(self, node: &str) -> impl Future<Output = Result<Option<Vec<u8>>, SinkError>> + Send;
}

impl ZkFenced for Fenced<'_, ZkSink> {
    async fn read(self, node: &str) -> Result<Option<Vec<u8>>, SinkError> {
        if !self.fence()?.claimed {
            self.claim().await?;
        }
        self.bounded(SinkError::Lost, self.sink().data(node)).await
    }
}

impl ZkSink {
    async fn data(&self, node: &str) -> Result<Option<Vec<u8>>, SinkError> {
        let node = node.to_owned();
        let reading = self.locks.on_thread(|session| async move {
            let path = path(&session.settings.root, &node)?;
            session.connected().await;
            let data = read(&session, session.client.get_data(&path)).await?;
            Ok(data.map(|(data, _)| data))
        });
        match reading.await {
            Ok(data) => data,
            Err(Away::NoSession | Away::Ended) => Err(super::no_session()),
        }
    }
}
