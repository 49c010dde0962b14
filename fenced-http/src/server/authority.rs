use async_trait::async_trait;
use fenced_core::{BoxError, Fence};

/// Says whether a token is true: by a look at the lock service, as at the node whose czxid it is.
///
/// It is asked when a holder is about to raise a fence, not for each request: a token that is
/// already the newest was vouched for.
///
/// ```
/// use fenced_core::{BoxError, Fence};
/// use fenced_http::Authority;
///
/// struct Own(std::sync::Mutex<std::collections::HashSet<(String, i64)>>);
///
/// #[async_trait::async_trait]
/// impl Authority for Own {
///     async fn vouches_for(&self, fence: &Fence) -> Result<bool, BoxError> {
///         let granted = self.0.lock().map_err(|_| "poisoned")?;
///         Ok(granted.contains(&(fence.resource.clone(), fence.token.get())))
///     }
/// }
/// ```
#[async_trait]
pub trait Authority: Send + Sync {
    /// Whether the holder of this token holds the lock now.
    ///
    /// # Errors
    /// It cannot be told; the request is refused, to be repeated.
    async fn vouches_for(&self, fence: &Fence) -> Result<bool, BoxError>;
}
