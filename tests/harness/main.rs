//! The harness against real servers: what the other tests rely on.

mod ensemble;
mod faults;
mod orphans;
mod postgres;
mod redis;
mod session;
mod traffic;
mod zookeeper;
