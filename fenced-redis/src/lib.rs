//! A Redis sink that refuses stale writes.
//!
//! ```no_run
//! use fenced_core::{Request, SinkError, section};
//! use fenced_redis::{RedisBatch, RedisFenced, RedisSink, redis};
//!
//! # async fn sell(locks: fenced_core::MemoryLocks) -> Result<(), Box<dyn std::error::Error>> {
//! let client = redis::Client::open("redis://shop.example/")?;
//! let stock = RedisSink::connect(client.get_multiplexed_async_connection().await?).await?;
//! let left: i64 = section(&locks, "/locks/inventory/4711")
//!     .run(async |guard| {
//!         let request = Request::new("sell/order-17", &("4711", 2));
//!         let sell = RedisBatch::new()
//!             .incr("stock:4711", -2)
//!             .hset("orders:4711", "order-17", "2 pieces");
//!         let [left, _] = guard.fence(&stock).run(request, sell).await?.into_answer();
//!         Ok::<_, SinkError>(left)
//!     })
//!     .await??;
//! # Ok(())
//! # }
//! ```
//!
//! What depends on what is there, such as whether anything is left to sell, is a [`RedisScript`].
//!
//! # How a write is fenced
//!
//! A hash keeps the newest token of each resource. Each write is one script, which compares its
//! token with that, as text, since a number of Lua is rounded above 2^53; looks the request up;
//! checks whether every operation can be applied; and only then raises the fence, writes, and keeps
//! the request with its answer. A server runs a script in one atomic step, and replicates what it
//! wrote as one.
//!
//! | key | what is in it |
//! |---|---|
//! | `fenced:fences`, or `fenced:{tag}:fences` | the newest tokens, when they came, the floor |
//! | `fenced:request:ID`, or `fenced:{tag}:request:ID` | a request's digest, token and answer, until it [expires](RedisSink::keep_requests) |
//! | `fenced:resets`, or `fenced:{tag}:resets` | a stream of who was [reset](RedisSink::reset), and why |
//!
//! On a cluster, everything that a script uses is in one slot: of a sink with one
//! [`tag`](RedisSink::tag), or of each resource, with [`tag_by`](RedisSink::tag_by).
//!
//! | what happened | what the sink says | what to do |
//! |---|---|---|
//! | a newer holder has claimed | `Stale` | start over under a new grant |
//! | the fence that this holder raised is gone, or behind | `NotClaimed` | the server has lost data: see whether the lock is still held, and claim again |
//! | a server that is loading, failing over, or busy; one that cannot be reached | `Retry` | repeat with the same request |
//! | no answer, or a connection that ended before it | `Ambiguous` | ask `outcome`, or repeat with the same request |
//! | an operation or a script that failed | `Backend` | as the cause says |
//!
//! # What it promises
//!
//! Never a lower token after a higher one in one surviving history. It is not linearizable across a
//! failover: replication is asynchronous, so that a replica that takes over may not know the last
//! claims and writes, although they were acknowledged. Fence, data and requests are then behind
//! together. The holder whose claim was forgotten gets `NotClaimed`; until it claims again, an older
//! holder may write. [`claim_replicas`](RedisSink::claim_replicas) makes that less likely; so do
//! `min-replicas-to-write 1`, against a master that nobody follows any more, and `appendonly yes`,
//! against a restart. For money use SQL.
//!
//! A server that drops keys when its memory is full would drop fences: [`RedisSink::check`] refuses
//! it. A command that is not sent through the sink is not fenced, nor is a script of yours that
//! fails in its middle undone.

mod batch;
mod call;
mod check;
mod collect;
mod kept;
mod keys;
mod outcome;
mod refusal;
mod replicas;
mod script;
mod section;
mod sink;
mod slot;
mod write;

pub use batch::RedisBatch;
pub use call::RedisCall;
pub use check::CheckError;
pub use collect::Collected;
pub use script::RedisScript;
pub use section::RedisFenced;
pub use sink::{Connection, RedisSink};
pub use write::RedisWrite;

/// The client whose connections a [`RedisSink`] takes, in the version that it takes.
pub use redis;
