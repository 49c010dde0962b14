//! The ZooKeeper lock against real servers.

mod cancel;
mod conformance;
mod faults;
mod inspecting;
mod interop;
mod operations;
mod queue;
mod servers;
mod sessions;
mod setup;
mod wire;
