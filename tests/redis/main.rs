//! `fenced-redis` against real servers.

mod anomalies;
mod batches;
mod checking;
mod cluster;
mod collecting;
mod conformance;
mod failover;
mod holder;
mod loss;
mod scripts;
mod server;
mod silent;
mod tokens;
