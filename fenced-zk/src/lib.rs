//! Fenced locks kept by a ZooKeeper ensemble, on paths that Curator's recipes can share.
//!
//! Programs use the facade `fenced` with the feature `zookeeper`.

mod address;
mod builder;
mod contender;
mod entry;
mod error;
mod events;
mod failure;
mod heartbeat;
mod holder;
mod host;
mod inspect;
mod label;
mod lines;
mod locks;
mod name;
mod nodelay;
mod own_watch;
mod parents;
mod pump;
mod queue;
mod refusal;
mod removal;
mod session;
mod settings;

pub use builder::{ZkAcl, ZkBuilder};
pub use error::{InspectError, ZkError};
pub use events::{SessionEvent, SessionEvents};
pub use inspect::{Contender, ContenderKind, Inspection};
pub use locks::ZkLocks;
