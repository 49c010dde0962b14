//! An HTTP sink, and the layer that refuses stale requests on the server.
//!
//! | you have | take | feature |
//! |---|---|---|
//! | a section that calls a service of yours | [`HttpSink`], [`HttpWrite`] | `client` |
//! | that service, with its data in PostgreSQL | [`FenceServer`] over a `PgSink` | `server` |
//! | that service, with effects that no database holds, as on a device | [`FenceServer`] over a [`Gate`] | `server` |
//! | handlers of axum, which take [`Held`] and [`PassedFence`] | | `axum` |
//! | tokens that nobody but a signer of yours can make | [`TokenSigner`], [`TokenKeys`] | `hmac` |
//!
//! # On the wire
//!
//! ```text
//! POST /valves/7/commands HTTP/1.1
//! Fencing-Token: "4294967339";r="/locks/valves/7"
//! Idempotency-Key: "command-17";d=:e0yvPCBYTFPpKIhmgCIWHVTUCSvfaJqp4Ai5v3hB1xk=:
//! Content-Digest: sha-256=:6yS5PjJUfVBNSIdQ4H0wqwiT8yQhTxzc7T/ER9XYvQs=:
//! ```
//!
//! All are structured fields of RFC 9651, each at most once. The token is a string, since an
//! integer of that RFC is too short for it; `r` is the resource that it is for, and further
//! parameters are `mode=shared`, `claimed`, and `kid`, `exp`, `sig` of a signed one. `d` is the
//! digest of what is asked for, where that is not the body's. Any client can speak it:
//!
//! ```text
//! curl -X PUT -H 'Fencing-Token: "33"' http://gateway/.fence/%2Flocks%2Fvalves%2F7
//! curl -H 'Fencing-Token: "33"' -H 'Idempotency-Key: "command-17"' -d open http://gateway/valves/7/commands
//! ```
//!
//! A fenced answer says what became of the request in `Fenced-Outcome`, and its token, or the
//! newest one, in `Fencing-Token`. Refusals are `application/problem+json` of RFC 9457; their type
//! ends in a name of this table.
//!
//! | what happened | status | type | what [`HttpSink`] says |
//! |---|---|---|---|
//! | no token | 428 | `fencing-token-required` | `Backend` |
//! | a token that is malformed, or two | 400 | `fencing-token-invalid` | `Backend` |
//! | a token for another resource, or that nobody vouches for | 403 | `fencing-token-rejected` | `Backend` |
//! | a newer token was seen | 412 | `stale-fencing-token` | `Stale`, which ends the lease |
//! | a token too far ahead to be true | 403 | `fencing-token-implausible` | `Implausible` |
//! | a fence that was claimed has been lost | 409 | `fence-not-claimed` | `NotClaimed` |
//! | the same key for another request | 422 | `idempotency-mismatch` | `RequestMismatch` |
//! | the same request is under way | 409, `Retry-After` | `request-in-flight` | `Retry` |
//! | an older holder's request is under way | 503, `Retry-After` | `resource-busy` | `Busy` |
//! | anything that may go better next time | 503, `Retry-After` | `retry` | `Retry` |
//! | the server failed and changed nothing | 500 | `resource-failed` | `Backend` |
//! | the server failed and may have changed something | 500 | `outcome-unknown` | `Ambiguous` |
//! | no answer at all, once the request was sent | | | `Ambiguous` |
//!
//! Of a handler's own answers, successes and redirections are committed and kept for those who
//! repeat the request; a refusal (4xx) is not, and its sender finds it as an [`HttpRefusal`] behind
//! `Backend`.
//!
//! # Tokens that are not true
//!
//! A single request with the greatest token would lock everybody out. In the order of their cost:
//! a [gate](Gate) and a `PgSink` refuse [steps that are too large](GateBuilder::max_step); an
//! [`Authority`] looks at the lock itself before a fence is raised; [`TokenKeys`] believe only what
//! a signer has signed. [`Gate::reset`] mends what happened all the same.
//!
//! # What it does not protect from
//!
//! A process that dies between an effect behind a [`Gate`] and its answer has had the effect
//! without knowing. A body is read, and an answer written, as a whole: streams are refused above a
//! limit. Connections that are upgraded are not fenced.

#![cfg_attr(
    not(all(feature = "client", feature = "server")),
    allow(dead_code, reason = "each side reads what the other one writes")
)]

mod answer;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "hmac")]
mod credential;
mod field;
#[cfg(feature = "server")]
mod gate;
mod header;
#[cfg(feature = "server")]
mod in_flight;
mod problem;
mod resource;
#[cfg(feature = "server")]
mod server;

pub use answer::HttpAnswer;
#[cfg(feature = "client")]
pub use client::{Credentials, HttpRefusal, HttpSink, HttpSinkError, HttpWrite, client_builder};
#[cfg(feature = "hmac")]
pub use credential::{TokenKeys, TokenSigner, WeakKey};
#[cfg(feature = "server")]
pub use gate::{
    Applied, Effect, FileStore, FileStoreError, Gate, GateBuilder, GateCollected, GateEntry,
    GatePermit, GateStore,
};
pub use header::{CONTENT_DIGEST, Credential, FENCED_OUTCOME, FENCING_TOKEN, IDEMPOTENCY_KEY};
pub use problem::ProblemKind;
#[cfg(feature = "axum")]
pub use server::PassedFence;
#[cfg(feature = "server")]
pub use server::{
    Authority, FenceEndpoint, FenceLayer, FenceServer, FenceServerBuilder, FenceService, Held,
    Problem, Route,
};

/// The framework whose extractors these are, in the version that they are for.
#[cfg(feature = "axum")]
pub use axum;
/// The client that a sink takes, in the version that it takes.
#[cfg(feature = "client")]
pub use reqwest;
