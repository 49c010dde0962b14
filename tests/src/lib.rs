//! Throwaway servers, and the faults between them and their clients.
//!
//! Servers that a whole run shares are named by [`shared`]; a test that stops, wipes or
//! pauses a server starts its own. Every process started here ends with its starter, also
//! when that one is killed.

pub mod background;
mod certificate;
mod ensemble;
mod folder;
pub mod foreground;
mod installed;
mod interrupt;
mod peer;
mod ports;
mod postgres;
mod process;
mod proxy;
mod ready;
mod redis;
mod redis_cluster;
mod servers;
pub mod shared;
mod times;
mod zookeeper;

pub use certificate::Certificate;
pub use ensemble::Ensemble;
pub use peer::Peer;
pub use postgres::{Postgres, PostgresOptions};
pub use proxy::{Fault, Operation, Proxy, Request, Sprung, Traffic, Way};
pub use redis::{Redis, RedisOptions};
pub use redis_cluster::RedisCluster;
pub use times::Times;
pub use zookeeper::{ZooKeeper, ZooKeeperOptions};
