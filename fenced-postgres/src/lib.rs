//! A PostgreSQL sink that refuses stale writes.
//!
//! ```no_run
//! use deadpool_postgres::Pool;
//! use fenced_core::{Request, SinkError, section};
//! use fenced_postgres::{Begin, PgFenced, PgSink, sink_error};
//!
//! # async fn sell(pool: Pool, locks: fenced_core::MemoryLocks) -> Result<(), Box<dyn std::error::Error>> {
//! let client = pool.get().await?;
//! fenced_postgres::migrate(&client).await?;
//! let stock = PgSink::new(pool);
//! let left: i64 = section(&locks, "/locks/inventory/4711")
//!     .run(async |guard| {
//!         let request = Request::new("sell/order-17", &("4711", 2));
//!         let tx = match guard.fence(&stock).begin(request).await? {
//!             Begin::Fresh(tx) => tx,
//!             Begin::Replayed(left) => return Ok(left),
//!         };
//!         let sell = "UPDATE stock SET count = count - 2 WHERE sku = '4711' RETURNING count";
//!         let sell = tx.prepare_cached(sell).await.map_err(sink_error)?;
//!         let left = tx.query_one(&sell, &[]).await.map_err(sink_error)?.get(0);
//!         Ok::<_, SinkError>(tx.commit(left).await?.into_answer())
//!     })
//!     .await??;
//! # Ok(())
//! # }
//! ```
//!
//! # How a transaction is fenced
//!
//! The table `fenced.fence` keeps the newest token of each resource. The first transaction of a
//! section raises it, which waits for the open transactions of older holders; the later ones lock
//! it, shared, so that a newer holder waits for them. Both do so with their first statement, and
//! raise an error if they are stale; it travels together with BEGIN. The last statement, which
//! travels together with COMMIT, keeps the request and its answer in `fenced.request`: a repetition
//! is answered from there, and of two that run at once only one is committed.
//!
//! | what happened | what the sink says | what to do |
//! |---|---|---|
//! | a newer holder has claimed | `Stale` | start over under a new grant |
//! | an older holder's transaction stays open | `Busy`, with its process | repeat, or end the process |
//! | serialization failure, deadlock, a connection that ended before COMMIT was sent | `Retry` | repeat with the same request |
//! | a connection that ended after that | `Ambiguous` | ask `outcome`, or repeat with the same request |
//! | a failed statement, the user's or ours | `Backend` | as the cause says; nothing was committed |
//!
//! # What it does not protect from
//!
//! Transactions of one holder run side by side, as isolated as any two. SQL that ends the
//! transaction by hand is noticed at the commit, SQL that is not fenced at all only by a
//! [guarded table](guard_table). After a failover to a standby that had not received everything,
//! fence, data and requests are behind together: what was acknowledged and lost may be written
//! again by an older holder until the newest one has claimed again.

mod blockers;
mod bounds;
mod collect;
mod commit;
mod fenced_tx;
mod open;
mod outcome;
mod own;
mod pipeline;
mod refusal;
mod schema;
mod section;
mod sink;
#[cfg(feature = "sqlx")]
pub mod sqlx;
mod statements;
mod told;
mod transactional;
mod tx;
mod value;

pub use collect::{Collected, collect, guard_table, reset};
pub use fenced_tx::{EnteredTx, FencedTx};
pub use own::{claim, enter};
pub use refusal::sink_error;
pub use schema::{migrate, schema};
pub use section::{Begin, PgFenced};
pub use sink::PgSink;
pub use transactional::PassedTx;
pub use tx::PgTx;

/// The pool that a [`PgSink`] takes, in the version that it takes.
pub use deadpool_postgres;
/// The client that a transaction derefs to, in the version that it does.
pub use tokio_postgres;
