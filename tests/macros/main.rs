//! `#[fenced]` on every function a service author writes, against the locks in memory.
//!
//! Built twice, as a caller of edition 2021 and as one of edition 2024.

mod attributes;
mod expansions;
mod guard;
mod holes;
mod hygiene;
mod installed;
mod inventory;
mod lints;
mod loss;
mod options;
mod reentrant;
mod send;
mod shapes;
mod size;
mod traits;
