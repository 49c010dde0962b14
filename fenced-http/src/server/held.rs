use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use fenced_core::Fence;

/// The transaction that holds the fence while a handler runs, among the extensions of its request;
/// with axum an extractor. It derefs to the sink's transaction: to `PgTx`, to
/// [`GatePermit`](crate::GatePermit).
///
/// It is committed when the handler has answered with a success or a redirection, and dropped
/// otherwise. A handler that still has it then, as in a task that it has started, has failed.
pub struct Held<T> {
    transaction: Arc<T>,
    fence: Arc<Fence>,
}

impl<T> Held<T> {
    pub(crate) fn new(transaction: Arc<T>, fence: Arc<Fence>) -> Self {
        Self { transaction, fence }
    }

    /// The fence that is held.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.fence
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.transaction
    }
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self {
            transaction: Arc::clone(&self.transaction),
            fence: Arc::clone(&self.fence),
        }
    }
}

impl<T> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}
