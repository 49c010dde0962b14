//! A Redis sink that refuses stale writes.
