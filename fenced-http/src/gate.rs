mod bounds;
mod builder;
mod effect;
mod entry;
mod file;
mod keeping;
mod ledger;
mod seen;
mod sink;
mod state;
mod store;

pub use builder::GateBuilder;
pub use effect::Effect;
pub use entry::{Applied, GateEntry};
pub use file::{FileStore, FileStoreError};
pub use keeping::GateCollected;
pub use sink::{Gate, GatePermit};
pub use store::GateStore;
