//! `#[fenced]` on every function a service author writes, against the locks in memory.

mod pass;
