use async_trait::async_trait;
use fenced_core::BoxError;

use crate::GateEntry;

/// Where a [`Gate`](crate::Gate) keeps what it must not forget; [`FileStore`](crate::FileStore) is
/// one.
///
/// One gate at a time may use it.
#[async_trait]
pub trait GateStore: Send + Sync {
    /// All entries, in the order in which they were appended; or fewer that say the same.
    ///
    /// # Errors
    /// They cannot be read, or are damaged; the gate does not open then.
    async fn load(&self) -> Result<Vec<GateEntry>, BoxError>;

    /// Appends an entry, durably: it is there after a loss of power.
    ///
    /// # Errors
    /// It may have been appended. Once that is so, later calls must fail too.
    ///
    /// # Cancel safety
    /// It may have been appended.
    async fn append(&self, entry: GateEntry) -> Result<(), BoxError>;
}
