use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fenced_core::TransactionalSink;
use tokio::sync::Semaphore;

use crate::in_flight::InFlight;
use crate::{Authority, FenceEndpoint, FenceLayer, Route};

/// A service that refuses stale requests: what its layers and its endpoint have in common.
///
/// A layer reads the headers and the body, opens a transaction of the sink, which compares and
/// holds the fence, lets the handler run, commits with the answer, and only then sends it. What
/// the handler does through [`Held`](crate::Held) is in the transaction; with a
/// [`Gate`](crate::Gate) it is whatever it does. The handler runs to its end although its client
/// has gone: whoever repeats the request gets its answer.
///
/// ```no_run
/// # #[cfg(feature = "axum")]
/// # fn router() -> axum::Router {
/// use axum::{Router, routing::post};
/// use fenced_http::{FenceServer, Gate, GatePermit, Held, Route};
///
/// async fn command(held: Held<GatePermit>, order: String) -> String {
///     format!("{order} by the holder with token {}", held.fence().token)
/// }
///
/// let fence = FenceServer::new(Gate::builder().in_memory());
/// let route = Route::new("/valves/{id}/commands", "/locks/valves/<id>");
/// Router::new()
///     .route("/valves/{id}/commands", post(command).layer(fence.layer(route)))
///     .nest_service("/.fence", fence.endpoint())
/// # }
/// ```
///
/// Put authentication outside of the layer, and of the endpoint: whoever may call them may raise
/// fences, and look at the answers to requests that it can name.
#[derive(Clone)]
pub struct FenceServer<S> {
    pub(crate) shared: Arc<Shared<S>>,
}

pub(crate) struct Shared<S> {
    pub(crate) sink: S,
    pub(crate) options: Options,
    pub(crate) in_flight: InFlight,
    pub(crate) slots: Arc<Semaphore>,
}

pub(crate) struct Options {
    pub(crate) body_limit: usize,
    pub(crate) body_timeout: Duration,
    pub(crate) answer_limit: usize,
    pub(crate) handler_timeout: Duration,
    pub(crate) max_requests: usize,
    pub(crate) requires_key: bool,
    pub(crate) authority: Option<Arc<dyn Authority>>,
    pub(crate) resources: Option<Arc<Filter>>,
    #[cfg(feature = "hmac")]
    pub(crate) keys: Option<crate::TokenKeys>,
}

type Filter = dyn Fn(&str) -> bool + Send + Sync;

/// Options of a [`FenceServer`].
#[must_use = "nothing is served yet"]
pub struct FenceServerBuilder<S> {
    sink: S,
    options: Options,
}

impl<S: TransactionalSink> FenceServer<S> {
    /// The longest body of a request that is read unless told otherwise, in bytes.
    pub const BODY_LIMIT: usize = 1 << 20;
    /// How long a body is awaited unless told otherwise.
    pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);
    /// The longest answer of a handler unless told otherwise, in bytes.
    pub const ANSWER_LIMIT: usize = 1 << 20;
    /// How long a handler may take unless told otherwise.
    pub const HANDLER_TIMEOUT: Duration = Duration::from_secs(30);
    /// How many requests are under way at once unless told otherwise.
    pub const MAX_REQUESTS: usize = 1_024;

    /// A server that compares with `sink`.
    pub fn new(sink: S) -> Self {
        Self::builder(sink).build()
    }

    /// Options, for [`FenceServerBuilder::build`].
    pub fn builder(sink: S) -> FenceServerBuilder<S> {
        FenceServerBuilder {
            sink,
            options: Options {
                body_limit: Self::BODY_LIMIT,
                body_timeout: Self::BODY_TIMEOUT,
                answer_limit: Self::ANSWER_LIMIT,
                handler_timeout: Self::HANDLER_TIMEOUT,
                max_requests: Self::MAX_REQUESTS,
                requires_key: false,
                authority: None,
                resources: None,
                #[cfg(feature = "hmac")]
                keys: None,
            },
        }
    }

    /// The layer for the handlers of one route.
    pub fn layer(&self, route: Route) -> FenceLayer<S> {
        FenceLayer::new(Arc::clone(&self.shared), route)
    }

    /// The service for the path `/.fence`, and all below it: `PUT /.fence/RESOURCE` claims, and
    /// `GET /.fence` tells what became of a request.
    pub fn endpoint(&self) -> FenceEndpoint<S> {
        FenceEndpoint::new(Arc::clone(&self.shared))
    }

    /// The sink.
    pub fn sink(&self) -> &S {
        &self.shared.sink
    }
}

impl<S: TransactionalSink> FenceServerBuilder<S> {
    /// The longest body of a request that is read, in bytes. It is held in memory.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.options.body_limit = bytes;
        self
    }

    /// How long a body is awaited; no fence is held meanwhile.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.options.body_timeout = timeout;
        self
    }

    /// The longest answer of a handler, in bytes: it is sent as a whole, once it is committed.
    pub fn answer_limit(mut self, bytes: usize) -> Self {
        self.options.answer_limit = bytes;
        self
    }

    /// How long a handler may take before it is dropped, since it holds up newer holders.
    pub fn handler_timeout(mut self, timeout: Duration) -> Self {
        self.options.handler_timeout = timeout;
        self
    }

    /// How many requests are under way at once, those included whose clients have gone.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.options.max_requests = requests.min(Semaphore::MAX_PERMITS);
        self
    }

    /// Refuses requests without an `Idempotency-Key`, which would be carried out again if they
    /// were repeated.
    pub fn require_key(mut self) -> Self {
        self.options.requires_key = true;
        self
    }

    /// Serves only the resources that `is_ours` says yes to.
    pub fn resources(mut self, is_ours: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.options.resources = Some(Arc::new(is_ours));
        self
    }

    /// Asks before a fence is raised.
    pub fn authority(mut self, authority: impl Authority + 'static) -> Self {
        self.options.authority = Some(Arc::new(authority));
        self
    }

    /// Refuses tokens that none of these keys has signed.
    #[cfg(feature = "hmac")]
    pub fn signed_by(mut self, keys: crate::TokenKeys) -> Self {
        self.options.keys = Some(keys);
        self
    }

    /// The server.
    pub fn build(self) -> FenceServer<S> {
        let slots = Semaphore::new(self.options.max_requests);
        let shared = Shared {
            sink: self.sink,
            options: self.options,
            in_flight: InFlight::default(),
            slots: Arc::new(slots),
        };
        FenceServer {
            shared: Arc::new(shared),
        }
    }
}

impl<S> fmt::Debug for FenceServer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceServer").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for FenceServerBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceServerBuilder").finish_non_exhaustive()
    }
}
