//! Critical sections for services that stay correct when the lock is lost.

pub use fenced_core::*;
pub use fenced_macros::fenced;

#[cfg(feature = "postgres")]
pub use fenced_postgres as postgres;
#[cfg(feature = "sqlite")]
pub use fenced_sqlite as sqlite;
#[cfg(feature = "zookeeper")]
pub use fenced_zk as zookeeper;

/// What the expansion of `#[fenced]` names; no part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use fenced_core::__private::*;
    pub use std::time::Duration;
}
