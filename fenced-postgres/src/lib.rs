//! A PostgreSQL sink that refuses stale writes.

mod blockers;
mod bounds;
mod collect;
mod commit;
mod open;
mod outcome;
mod own;
mod pipeline;
mod refusal;
mod schema;
mod section;
mod sink;
mod statements;
mod tx;
mod value;

pub use collect::{Collected, collect, guard_table, reset};
pub use own::{claim, enter};
pub use refusal::sink_error;
pub use schema::{migrate, schema};
pub use section::{Begin, EnteredTx, FencedTx, PgFenced};
pub use sink::PgSink;
pub use tx::PgTx;

/// The pool that a [`PgSink`] takes, in the version that it takes.
pub use deadpool_postgres;
/// The client that a transaction derefs to, in the version that it does.
pub use tokio_postgres;
