use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use fenced_core::{Fate, Fence, FencingToken, Request, TransactionalSink};
use http::request::Parts;
use http::{Method, Response};
use tower_service::Service;

use crate::answer::Stored;
use crate::server::admit;
use crate::server::fence_server::Shared;
use crate::server::refusal::used_before;
use crate::server::visit::{claimed, stored_response};
use crate::{Problem, ProblemKind, resource};

/// Takes claims, and tells what became of requests; made by
/// [`FenceServer::endpoint`](crate::FenceServer::endpoint).
///
/// | request | answer |
/// |---|---|
/// | `PUT /.fence/RESOURCE` with `Fencing-Token` | 204 once no older holder can do anything any more |
/// | `GET /.fence` with `Idempotency-Key: "ID";d=:DIGEST:` | the stored answer, or 404 |
///
/// The resource is percent-encoded as one segment: `/.fence/%2Flocks%2Fvalves%2F7`. Whoever asks
/// for an answer has to know the digest of its request. With the `Fencing-Token` under which it was
/// sent, the problem `request-absent` says that it cannot be applied any more.
pub struct FenceEndpoint<S> {
    shared: Arc<Shared<S>>,
}

impl<S: TransactionalSink> FenceEndpoint<S> {
    pub(crate) fn new(shared: Arc<Shared<S>>) -> Self {
        Self { shared }
    }
}

impl<S, B> Service<http::Request<B>> for FenceEndpoint<S>
where
    S: TransactionalSink + 'static,
    B: From<Bytes> + Send + 'static,
{
    type Response = Response<B>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        let (parts, _) = request.into_parts();
        Box::pin(async move {
            let answered = match parts.method {
                Method::PUT => shared.answer_claim(&parts).await,
                Method::GET => shared.answer_outcome(&parts).await,
                _ => Err(Problem::new(
                    ProblemKind::Method,
                    "PUT claims, GET asks for an outcome",
                )),
            };
            Ok(answered.unwrap_or_else(Problem::response))
        })
    }
}

impl<S: TransactionalSink> Shared<S> {
    async fn answer_claim<B: From<Bytes>>(&self, parts: &Parts) -> Result<Response<B>, Problem> {
        let token = admit::token(&parts.headers)?;
        let segment = parts.uri.path().rsplit('/').next().unwrap_or_default();
        let name = resource::decode(segment).filter(|name| resource::check(name).is_ok());
        let Some(name) = name else {
            let detail = "the last segment of the path names no resource that can be fenced";
            return Err(Problem::new(ProblemKind::NoResource, detail));
        };
        let fence = self.credible(&token, &name)?;
        self.claim(&fence).await?;
        Ok(claimed(&fence))
    }

    async fn answer_outcome<B: From<Bytes>>(&self, parts: &Parts) -> Result<Response<B>, Problem> {
        let (request, sent) = asked(parts)?;
        let fate = self.sink.outcome(&request).await;
        match fate.map_err(|error| Problem::of(&error, &sent))? {
            Fate::Applied(answer) => {
                let answer = Stored::read(&answer).and_then(Stored::into_answer);
                // An answer that no layer has stored belongs to another request with this id.
                let answer = answer.map_err(|_| Problem::new(ProblemKind::Mismatch, used_before()));
                Ok(stored_response(answer?, "applied", None))
            }
            Fate::Absent => {
                let detail = "the request was not applied, and cannot be any more";
                Err(Problem::new(ProblemKind::RequestAbsent, detail))
            }
            Fate::Unknown => {
                let detail = "the request was not applied yet, and may be under way";
                Err(Problem::new(ProblemKind::RequestUnknown, detail))
            }
        }
    }
}

/// The request that is asked for, and a fence to speak of.
fn asked(parts: &Parts) -> Result<(Request, Fence), Problem> {
    let required = |detail| Problem::new(ProblemKind::KeyRequired, detail);
    let Some(key) = admit::key(&parts.headers)? else {
        return Err(required(
            "name the request as Idempotency-Key: \"ID\";d=:SHA-256:",
        ));
    };
    let Some(digest) = key.digest else {
        return Err(required(
            "tell the digest of the request as the parameter `d` of its key",
        ));
    };
    let request = Request::with_digest(key.id, digest);
    let nowhere = Fence::new("(none)", FencingToken::MAX);
    request
        .digest()
        .map_err(|error| Problem::of(&error, &nowhere))?;
    if parts.headers.get(crate::FENCING_TOKEN).is_none() {
        return Ok((request, nowhere));
    }
    let token = admit::token(&parts.headers)?;
    let Some(name) = token.resource.clone() else {
        let detail = "Fencing-Token: name the resource as its parameter `r`";
        return Err(Problem::new(ProblemKind::TokenInvalid, detail));
    };
    let fence = token.at(&name)?;
    Ok((request.sent_under(fence.clone()), fence))
}

impl<S> Clone for FenceEndpoint<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S> fmt::Debug for FenceEndpoint<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceEndpoint").finish_non_exhaustive()
    }
}
