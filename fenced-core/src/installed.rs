use std::future::Future;
use std::sync::{Arc, OnceLock};

use crate::LockService;

static INSTALLED: OnceLock<Arc<dyn LockService>> = OnceLock::new();

tokio::task_local! {
    static OVERRIDDEN: Arc<dyn LockService>;
}

/// A lock service was installed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a lock service is already installed: install one, once, at start; in tests use `with_locks`"
)]
pub struct AlreadyInstalled;

/// Makes `locks` the lock service of free `#[fenced]` functions that name none.
///
/// # Errors
/// [`AlreadyInstalled`] at the second call.
pub fn install(locks: impl LockService + 'static) -> Result<(), AlreadyInstalled> {
    INSTALLED.set(Arc::new(locks)).map_err(|_| AlreadyInstalled)
}

/// Runs `future` with `locks` in place of the installed lock service, as tests do.
///
/// It holds for the future itself, not for tasks that it spawns.
///
/// # Cancel safety
/// As that of `future`.
pub async fn with_locks<F: Future>(locks: impl LockService + 'static, future: F) -> F::Output {
    OVERRIDDEN.scope(Arc::new(locks), future).await
}

/// Where a section of a function without `self` takes its lock from.
pub(crate) fn current() -> Option<Arc<dyn LockService>> {
    OVERRIDDEN
        .try_with(Arc::clone)
        .ok()
        .or_else(|| INSTALLED.get().cloned())
}
