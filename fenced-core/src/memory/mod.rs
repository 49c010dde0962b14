mod locks;
mod sink;

pub use locks::MemoryLocks;
pub use sink::{MemorySink, MemoryWrite};
