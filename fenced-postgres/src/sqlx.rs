//! The same sink on a pool of `sqlx`; needs Rust 1.94.
//!
//! ```no_run
//! use fenced_core::{Request, SinkError, section};
//! use fenced_postgres::sqlx::{SqlxFenced, sink_error};
//! use fenced_postgres::{Begin, PgSink};
//! use sqlx::PgPool;
//!
//! # async fn sell(pool: PgPool, locks: fenced_core::MemoryLocks) -> Result<(), Box<dyn std::error::Error>> {
//! fenced_postgres::sqlx::migrate(&mut *pool.acquire().await?).await?;
//! let stock = PgSink::new(pool);
//! let left: i64 = section(&locks, "/locks/inventory/4711")
//!     .run(async |guard| {
//!         let request = Request::new("sell/order-17", &("4711", 2));
//!         let mut tx = match guard.fence(&stock).begin(request).await? {
//!             Begin::Fresh(tx) => tx,
//!             Begin::Replayed(left) => return Ok(left),
//!         };
//!         let sell = "UPDATE stock SET count = count - 2 WHERE sku = '4711' RETURNING count";
//!         let left = sqlx::query_scalar(sell).fetch_one(&mut **tx).await.map_err(sink_error)?;
//!         Ok::<_, SinkError>(tx.commit(left).await?.into_answer())
//!     })
//!     .await??;
//! # Ok(())
//! # }
//! ```
//!
//! BEGIN and the fence are one round trip, and so are the request's row and COMMIT. A refusal and
//! a replay cost a second one, for ROLLBACK.

mod blockers;
mod commit;
mod fenced_tx;
mod literal;
mod open;
mod own;
mod section;
mod sink;
mod told;
mod tx;

pub use fenced_tx::{EnteredTx, FencedTx};
pub use own::{claim, enter, migrate};
pub use section::SqlxFenced;
/// The crate whose pool a [`PgSink`](crate::PgSink) takes, in the version that it takes.
pub use sqlx;
pub use told::sink_error;
pub use tx::SqlxTx;
