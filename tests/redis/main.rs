//! The Redis sink.
