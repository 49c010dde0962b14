//! `fenced-postgres` against a real server.

mod aborted;
mod anomalies;
mod cancelled;
mod collecting;
mod conformance;
mod database;
mod guarded;
mod held_up;
mod holder;
mod idempotency;
mod migration;
mod on_sqlx;
mod own;
mod round_trips;
mod silent;
mod tokens;
mod transactions;
mod travelled;
