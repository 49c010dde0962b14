//! A PostgreSQL sink that refuses stale writes.

mod blockers;
mod claim;
mod commit;
mod open;
mod outcome;
mod pipeline;
mod refusal;
mod rows;
mod schema;
mod section;
mod sink;
mod tx;
mod value;

pub use refusal::sink_error;
pub use schema::{migrate, schema};
pub use section::{Begin, EnteredTx, FencedTx, PgFenced};
pub use sink::PgSink;
pub use tx::PgTx;
