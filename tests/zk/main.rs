//! The ZooKeeper lock against real servers.

mod cancel;
mod conformance;
mod connecting;
mod ensemble;
mod faults;
mod inspecting;
mod interop;
mod operations;
mod processes;
mod queue;
mod rebase;
mod servers;
mod sessions;
mod setup;
mod sink;
mod soak;
#[cfg(feature = "tls")]
mod tls;
mod wire;
