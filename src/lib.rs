//! Critical sections for services that stay correct when the lock is lost.
//!
//! [`#[fenced]`](macro@fenced) queues for a lock, runs an async function with a [`FencedGuard`], and
//! drops it when the lock is lost. What the function writes goes through a [`FencingSink`], which
//! makes the written resource itself refuse a holder that is late.
//!
//! ```
//! use fenced::prelude::*;
//! use fenced::{MemoryLocks, MemorySink, MemoryWrite};
//!
//! struct Inventory { locks: MemoryLocks, stock: MemorySink }
//!
//! impl HasLocks for Inventory {
//!     fn locks(&self) -> &dyn LockService { &self.locks }
//! }
//!
//! impl Inventory {
//!     #[fenced(lock = "/locks/inventory/<sku>", timeout = "3s")]
//!     async fn restock(&self, guard: FencedGuard<'_>, sku: &str) -> Result<i64, OrderError> {
//!         let request = Request::new("delivery-1", sku);
//!         let more = MemoryWrite::add(sku, 5);
//!         Ok(guard.fence(&self.stock).write(&request, more).await?.into_answer())
//!     }
//! }
//!
//! # #[derive(Debug)] struct OrderError;
//! # impl From<LockError> for OrderError { fn from(_: LockError) -> Self { Self } }
//! # impl From<SinkError> for OrderError { fn from(_: SinkError) -> Self { Self } }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), OrderError> {
//! let inventory = Inventory { locks: MemoryLocks::new(), stock: MemorySink::new() };
//! assert_eq!(inventory.restock("sku-4711").await?, 5);
//! # Ok(())
//! # }
//! ```
//!
//! | to have | use | feature |
//! |---|---|---|
//! | locks kept by ZooKeeper | `ZkLocks` | `zookeeper` |
//! | locks in a file, for the processes of one machine | `SqliteLocks` | `sqlite` (default) |
//! | locks in memory, for tests | [`MemoryLocks`] | |
//! | writes to PostgreSQL | `PgSink` | `postgres`, `sqlx` |
//! | writes to Redis | `RedisSink` | `redis` |
//! | writes to nodes of ZooKeeper itself | `ZkSink` | `zookeeper` |
//! | writes to a SQLite file | `SqliteSink` | `sqlite` (default) |
//! | writes to services of yours over HTTP | `HttpSink` | `http` |
//! | those services | `http::FenceServer`, a layer | `http-server` |
//! | writes to counters in memory, for tests | [`MemorySink`] | |
//! | a lock service or a sink of your own | [`LockService`], [`FencingSink`] | `testing` checks it |

pub use fenced_core::*;
pub use fenced_macros::LockSegment;
#[doc = include_str!("guide/attribute.md")]
pub use fenced_macros::fenced;

#[cfg(any(feature = "http", feature = "http-server"))]
pub use fenced_http as http;
#[cfg(feature = "postgres")]
pub use fenced_postgres as postgres;
#[cfg(feature = "redis")]
pub use fenced_redis as redis;
#[cfg(feature = "sqlite")]
pub use fenced_sqlite as sqlite;
#[cfg(feature = "zookeeper")]
pub use fenced_zk as zookeeper;

/// What a service that uses `#[fenced]` names.
pub mod prelude {
    pub use fenced_core::{
        Fenced, FencedGuard, FencingSink, HasLocks, LockError, LockSegment, LockService, Outcome,
        Request, SinkError, section,
    };
    #[cfg(feature = "http")]
    pub use fenced_http::{HttpSink, HttpWrite};
    pub use fenced_macros::{LockSegment, fenced};
    #[cfg(feature = "sqlx")]
    pub use fenced_postgres::sqlx::SqlxFenced;
    #[cfg(feature = "postgres")]
    pub use fenced_postgres::{Begin, PgFenced, PgSink, PgTx};
    #[cfg(feature = "redis")]
    pub use fenced_redis::{RedisBatch, RedisFenced, RedisScript, RedisSink};
    #[cfg(feature = "sqlite")]
    pub use fenced_sqlite::{SqliteFenced, SqliteLocks, SqliteSink};
    #[cfg(feature = "zookeeper")]
    pub use fenced_zk::{ZkFenced, ZkLocks, ZkSink, ZkWrite};
}

/// What needs more room than the documentation of one item.
pub mod guide {
    #[doc = include_str!("guide/limits.md")]
    pub mod limits {}
}

/// What the expansion of `#[fenced]` names; no part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use fenced_core::__private::*;
    pub use std::borrow::Cow;
    pub use std::time::Duration;
}

#[cfg(all(
    doctest,
    feature = "postgres",
    feature = "sqlite",
    feature = "zookeeper"
))]
#[doc = include_str!("../README.md")]
struct Readme;
