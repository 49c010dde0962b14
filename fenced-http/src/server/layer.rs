use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use fenced_core::{BoxError, TransactionalSink};
use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use crate::Route;
use crate::server::fence_server::Shared;
use crate::server::visit::Visit;

/// Makes a service refuse stale requests; made by [`FenceServer::layer`](crate::FenceServer::layer).
///
/// The body's type is one that can be made of bytes, such as axum's.
pub struct FenceLayer<S> {
    shared: Arc<Shared<S>>,
    route: Route,
}

/// The service that a [`FenceLayer`] makes.
pub struct FenceService<S, I> {
    shared: Arc<Shared<S>>,
    route: Route,
    inner: I,
}

impl<S> FenceLayer<S> {
    pub(crate) fn new(shared: Arc<Shared<S>>, route: Route) -> Self {
        Self { shared, route }
    }
}

impl<S, I> Layer<I> for FenceLayer<S> {
    type Service = FenceService<S, I>;

    fn layer(&self, inner: I) -> Self::Service {
        FenceService {
            shared: Arc::clone(&self.shared),
            route: self.route.clone(),
            inner,
        }
    }
}

impl<S, I, B, R> Service<Request<B>> for FenceService<S, I>
where
    S: TransactionalSink + 'static,
    I: Service<Request<B>, Response = Response<R>, Future: Send, Error: Send>
        + Clone
        + Send
        + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    R: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<B>;
    type Error = I::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, I::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        // Who is refused needs no inner service; who is let in waits for its own.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (shared, route) = (Arc::clone(&self.shared), self.route.clone());
        let inner = self.inner.clone();
        Box::pin(async move {
            match Visit::admit(shared, &route, request).await {
                Ok(visit) => visit.run(inner).await,
                Err(problem) => Ok(problem.response()),
            }
        })
    }
}

impl<S> Clone for FenceLayer<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            route: self.route.clone(),
        }
    }
}

impl<S, I: Clone> Clone for FenceService<S, I> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            route: self.route.clone(),
            inner: self.inner.clone(),
        }
    }
}

impl<S> fmt::Debug for FenceLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceLayer").finish_non_exhaustive()
    }
}

impl<S, I: fmt::Debug> fmt::Debug for FenceService<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
