//! The parts of `fenced` that speak to no server: the guard, the section runner, and the traits
//! that lock services and sinks implement.
//!
//! Programs use the facade `fenced`; those who write a lock service or a sink depend on this crate.
//!
//! | you write | you implement | you check it with |
//! |---|---|---|
//! | a lock service | [`LockService`], [`LeaseHandle`] | `lock_conformance!` (feature `testing`) |
//! | a sink | [`FencingSink`] | `sink_conformance!` (feature `testing`) |

mod answer;
mod error;
mod fence;
mod guard;
mod held;
mod installed;
mod lease;
mod loss;
mod memory;
mod path;
mod race;
mod request;
mod running;
mod section;
mod segment;
mod service;
mod sink;
mod sink_error;
mod state;
mod statement;
#[cfg(feature = "testing")]
pub mod testing;
mod timer;
mod token;
mod transactional;

pub use answer::Answer;
pub use error::{BoxError, FencedOutput, LockError, Queue};
pub use fence::{Fence, Fenced};
pub use guard::{FencedGuard, Hold};
pub use installed::{AlreadyInstalled, install, with_locks};
pub use lease::{Lease, LeaseControl, LeaseHandle, Released};
pub use loss::{Loss, LossReason};
pub use memory::{MemoryLocks, MemorySink, MemoryWrite};
pub use path::{LockPath, PathError};
pub use request::Request;
pub use section::{Entered, OnLost, Release, Section, section};
pub use segment::LockSegment;
pub use service::{Budget, HasLocks, LockRequest, LockService, Mode, ServiceId};
pub use sink::{Fate, FencingSink, Outcome, SinkId};
pub use sink_error::SinkError;
pub use statement::{SqlValue, Statement};
pub use token::{FencingToken, TokenError};
pub use transactional::{Opened, TransactionalSink};

/// What the expansion of `#[fenced]` calls; no part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use crate::section::{installed_section, template_section};
    pub use crate::segment::PathBuilder;

    /// A value of the type that a body must have; never called.
    pub fn output<T>() -> T {
        unreachable!("the expansion of `#[fenced]` calls this nowhere")
    }
}
