//! Fenced locks kept by a ZooKeeper ensemble, on paths that Curator's recipes can share.
//!
//! Programs use the facade `fenced` with the feature `zookeeper`.
//!
//! # Other libraries on the same path
//!
//! | the other one | waits for us | we wait for it | heeds [`ask_to_release`](ZkLocks::ask_to_release), and asks us |
//! |---|---|---|---|
//! | Curator's `InterProcessMutex` | yes | yes | yes, if made revocable |
//! | Kazoo's `Lock` with `extra_lock_patterns=["-lock-"]` | yes | yes | no |
//! | Kazoo's `Lock` as it comes | **no** | yes | no |
//!
//! Proved by programs on Curator 5.4.0 and Kazoo 2.11.0: both ways round, and in crowds of several
//! processes each, with rising tokens. Curator and Kazoo as it comes do not see each other either.
//!
//! What such a library does not have is a token: what its holders write is not fenced, so one that
//! was paused can still write after a holder of ours. And nothing else may live in a lock's
//! directory, since some names block Curator for good; [`inspect`](ZkLocks::inspect) shows them.

mod address;
mod audit;
mod base;
mod builder;
mod contender;
mod entry;
mod error;
mod events;
mod failure;
mod heartbeat;
mod holder;
mod host;
mod hosts;
mod inspect;
mod label;
mod lines;
mod locks;
mod marks;
mod name;
mod node;
mod nodelay;
mod own_watch;
mod parents;
mod pause;
mod pump;
mod queue;
mod reach;
mod rebase;
mod refusal;
mod removal;
mod session;
mod settings;
mod sink;
#[cfg(feature = "tls")]
mod tls;

pub use builder::{ZkAcl, ZkBuilder};
pub use error::{InspectError, ZkError};
pub use events::{SessionEvent, SessionEvents};
pub use inspect::{Contender, ContenderKind, Inspection};
pub use locks::ZkLocks;
pub use sink::{ZkFenced, ZkSink, ZkWrite};
#[cfg(feature = "tls")]
pub use tls::ZkTls;
