//! Critical sections for services that stay correct when the lock is lost.

pub use fenced_core::*;
pub use fenced_macros::{LockSegment, fenced};

#[cfg(feature = "postgres")]
pub use fenced_postgres as postgres;
#[cfg(feature = "sqlite")]
pub use fenced_sqlite as sqlite;
#[cfg(feature = "zookeeper")]
pub use fenced_zk as zookeeper;

/// What a service that uses `#[fenced]` names.
pub mod prelude {
    pub use fenced_core::{
        FencedGuard, FencingSink, HasLocks, LockError, LockSegment, LockService, Request, SinkError,
    };
    pub use fenced_macros::{LockSegment, fenced};
}

/// What the expansion of `#[fenced]` names; no part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use fenced_core::__private::*;
    pub use std::borrow::Cow;
    pub use std::time::Duration;
}
