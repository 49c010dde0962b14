//! One request, from its headers to its answer.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use fenced_core::{BoxError, Fence, Opened, Outcome, Request, SinkError, TransactionalSink};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::sync::OwnedSemaphorePermit;
use tower_service::Service;
use tracing::Instrument as _;

use crate::answer::Stored;
use crate::header::{FENCED_OUTCOME, FENCING_TOKEN, content_digest, digest, token_value};
use crate::server::admit;
use crate::server::fence_server::Shared;
use crate::server::refusal::used_before;
use crate::{Held, HttpAnswer, Problem, ProblemKind, Route};

/// A request that is let in: it has its body, and holds nothing yet.
pub(crate) struct Visit<S> {
    shared: Arc<Shared<S>>,
    fence: Fence,
    request: Option<Request>,
    /// What else the same id must not be used for.
    target: String,
    parts: Parts,
    body: Bytes,
    _slot: OwnedSemaphorePermit,
}

impl<S: TransactionalSink + 'static> Visit<S> {
    pub(crate) async fn admit<B>(
        shared: Arc<Shared<S>>,
        route: &Route,
        request: http::Request<B>,
    ) -> Result<Self, Problem>
    where
        B: Body<Error: Into<BoxError>>,
    {
        let (parts, body) = request.into_parts();
        let fence = shared.fence(&parts, route)?;
        let key = admit::key(&parts.headers)?;
        if key.is_none() && shared.options.requires_key {
            let detail = "send an id of the request as Idempotency-Key: \"ID\"";
            return Err(Problem::new(ProblemKind::KeyRequired, detail));
        }
        let Ok(slot) = Arc::clone(&shared.slots).try_acquire_owned() else {
            let detail = "as many requests as may be are under way: try again";
            return Err(Problem::new(ProblemKind::Retry, detail));
        };
        let body = shared.read(body).await?;
        let digest = checked_digest(&parts, &body)?;
        let request = key.map(|key| Request::with_digest(key.id, key.digest.unwrap_or(digest)));
        if let Some(Err(error)) = request.as_ref().map(Request::digest) {
            return Err(Problem::of(&error, &fence));
        }
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            fence,
            request,
            target: format!("{} {path}", parts.method),
            parts,
            body,
            _slot: slot,
            shared,
        })
    }

    /// Carries it out in a task of its own, which goes on when the client has gone.
    pub(crate) async fn run<I, B, R>(self, inner: I) -> Result<Response<B>, I::Error>
    where
        I: Service<http::Request<B>, Response = Response<R>, Future: Send, Error: Send>
            + Send
            + 'static,
        B: From<Bytes> + Send + 'static,
        R: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let undoes = self.shared.sink.undoes();
        let carried_out = self.carry_out(inner).instrument(tracing::Span::current());
        match tokio::spawn(carried_out).await {
            Ok(answered) => answered,
            Err(error) => {
                tracing::error!(%error, "the handler of a fenced request panicked");
                Ok(failed(undoes, "the handler panicked").response())
            }
        }
    }

    async fn carry_out<I, B, R>(mut self, inner: I) -> Result<Response<B>, I::Error>
    where
        I: Service<http::Request<B>, Response = Response<R>>,
        B: From<Bytes>,
        R: Body<Error: Into<BoxError>>,
    {
        let in_flight = &self.shared.in_flight;
        let ticket = self.request.as_ref().map(|r| in_flight.enter(r.id()));
        if let Some(None) = ticket {
            let detail = "the same request is under way: repeat it later with the same key";
            return Ok(Problem::new(ProblemKind::InFlight, detail).response());
        }
        let transaction = match self.shared.open(&self.fence, self.request.as_ref()).await {
            Err(problem) => return Ok(problem.response()),
            Ok(Opened::Replayed(answer)) => return Ok(self.replay(&answer)),
            Ok(Opened::Fresh(transaction)) => Arc::new(transaction),
        };
        let request = self.for_handler(&transaction);
        let limit = self.shared.options.handler_timeout;
        let answering = answer(inner, request, self.shared.options.answer_limit);
        let problem = match tokio::time::timeout(limit, answering).await {
            Ok(Ok(answer)) => return Ok(self.conclude(transaction, answer).await),
            Ok(Err(NoAnswer::Inner(error))) => return Err(error),
            Ok(Err(NoAnswer::TooLong)) => self.failed("the handler's answer is too long"),
            Ok(Err(NoAnswer::Broken)) => self.failed("the handler's answer broke off"),
            Err(_) => self.failed("the handler took too long"),
        };
        Ok(problem.response())
    }

    /// The request as the handler gets it: with its body, and what holds the fence.
    fn for_handler<B: From<Bytes>>(
        &mut self,
        transaction: &Arc<S::Transaction>,
    ) -> http::Request<B> {
        let mut request = http::Request::new(B::from(std::mem::take(&mut self.body)));
        *request.method_mut() = self.parts.method.clone();
        *request.uri_mut() = self.parts.uri.clone();
        *request.version_mut() = self.parts.version;
        *request.headers_mut() = std::mem::take(&mut self.parts.headers);
        *request.extensions_mut() = std::mem::take(&mut self.parts.extensions);
        let held = Held::new(Arc::clone(transaction), Arc::new(self.fence.clone()));
        request.extensions_mut().insert(held);
        request
    }

    /// Commits what succeeded, and drops what did not.
    async fn conclude<B: From<Bytes>>(
        &self,
        transaction: Arc<S::Transaction>,
        (mut parts, body): (http::response::Parts, Bytes),
    ) -> Response<B> {
        let Some(transaction) = Arc::into_inner(transaction) else {
            return self
                .failed("the handler still has the transaction, as in a task that it has started")
                .response();
        };
        parts.headers.remove(FENCED_OUTCOME);
        parts
            .headers
            .insert(FENCING_TOKEN, token_value(self.fence.token));
        let outcome = if parts.status.is_success() || parts.status.is_redirection() {
            let answer = HttpAnswer::new(parts.status, &parts.headers, body.clone());
            match self.commit(transaction, &answer).await {
                Ok(None) => Some("applied"),
                Ok(Some(replayed)) => return replayed,
                Err(error) => return Problem::of(&error, &self.fence).response(),
            }
        } else if self.shared.sink.undoes() || parts.status.is_client_error() {
            self.shared.sink.give_up(transaction);
            Some("refused")
        } else {
            drop(transaction);
            None
        };
        let outcome = outcome.map(HeaderValue::from_static);
        parts
            .headers
            .extend(outcome.map(|outcome| (FENCED_OUTCOME, outcome)));
        Response::from_parts(parts, B::from(body))
    }

    /// None, or what a twin was answered that was committed first.
    async fn commit<B: From<Bytes>>(
        &self,
        transaction: S::Transaction,
        answer: &HttpAnswer,
    ) -> Result<Option<Response<B>>, SinkError> {
        let stored = Stored::of(&self.target, answer)?;
        match self.shared.sink.commit(transaction, stored).await? {
            Outcome::Applied(_) => Ok(None),
            Outcome::Replayed(stored) => Ok(Some(self.replay(&stored))),
        }
    }

    fn replay<B: From<Bytes>>(&self, answer: &fenced_core::Answer) -> Response<B> {
        let stored = Stored::read(answer).ok();
        let stored = stored.filter(|stored| stored.target == self.target);
        match stored.map(Stored::into_answer) {
            Some(Ok(answer)) => stored_response(answer, "replayed", Some(&self.fence)),
            Some(Err(error)) => Problem::of(&error, &self.fence).response(),
            None => Problem::new(ProblemKind::Mismatch, used_before()).response(),
        }
    }

    fn failed(&self, detail: &str) -> Problem {
        tracing::error!(target_of_request = %self.target, detail, "a fenced request failed");
        failed(self.shared.sink.undoes(), detail)
    }
}

impl<S> Shared<S> {
    /// The whole body, in bounded memory and time.
    async fn read<B: Body<Error: Into<BoxError>>>(&self, body: B) -> Result<Bytes, Problem> {
        let limit = self.options.body_limit;
        let too_large = || {
            let detail = format!("the body has more than the {limit} bytes that are taken");
            Problem::new(ProblemKind::TooLarge, detail)
        };
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large());
        }
        let whole = Limited::new(body, limit).collect();
        match tokio::time::timeout(self.options.body_timeout, whole).await {
            Ok(Ok(whole)) => Ok(whole.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => {
                let detail = "the body broke off";
                Err(Problem::new(ProblemKind::Broken, detail))
            }
            Err(_) => {
                let detail = "the body did not arrive in time";
                Err(Problem::new(ProblemKind::TooSlow, detail))
            }
        }
    }
}

/// The digest of the body, which is what the headers say it is, if they do.
fn checked_digest(parts: &Parts, body: &[u8]) -> Result<[u8; 32], Problem> {
    let own = digest(body);
    let detail = match content_digest(&parts.headers) {
        Ok(told) if told.is_none_or(|told| told == own) => return Ok(own),
        Ok(_) => "Content-Digest: it is not that of the body".to_owned(),
        Err(malformed) => format!("Content-Digest: {malformed}"),
    };
    Err(Problem::new(ProblemKind::DigestMismatch, detail))
}

enum NoAnswer<E> {
    Inner(E),
    TooLong,
    Broken,
}

/// What the inner service answers, with its whole body.
async fn answer<I, B, R>(
    mut inner: I,
    request: http::Request<B>,
    limit: usize,
) -> Result<(http::response::Parts, Bytes), NoAnswer<I::Error>>
where
    I: Service<http::Request<B>, Response = Response<R>>,
    R: Body<Error: Into<BoxError>>,
{
    let ready = poll_fn(|context| inner.poll_ready(context)).await;
    ready.map_err(NoAnswer::Inner)?;
    let answered = inner.call(request).await.map_err(NoAnswer::Inner)?;
    let (parts, body) = answered.into_parts();
    match Limited::new(body, limit).collect().await {
        Ok(whole) => Ok((parts, whole.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Err(NoAnswer::TooLong),
        Err(_) => Err(NoAnswer::Broken),
    }
}

/// Nothing was changed, where that is sure.
fn failed(undoes: bool, detail: &str) -> Problem {
    let kind = if undoes {
        ProblemKind::Failed
    } else {
        ProblemKind::Unknown
    };
    Problem::new(kind, detail)
}

pub(crate) fn stored_response<B: From<Bytes>>(
    answer: HttpAnswer,
    outcome: &'static str,
    fence: Option<&Fence>,
) -> Response<B> {
    let mut response = Response::new(B::from(answer.body));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    let headers = response.headers_mut();
    headers.insert(FENCED_OUTCOME, HeaderValue::from_static(outcome));
    if let Some(fence) = fence {
        headers.insert(FENCING_TOKEN, token_value(fence.token));
    }
    response
}

/// Without a body.
pub(crate) fn claimed<B: From<Bytes>>(fence: &Fence) -> Response<B> {
    let mut response = Response::new(B::from(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(FENCED_OUTCOME, HeaderValue::from_static("claimed"));
    headers.insert(FENCING_TOKEN, token_value(fence.token));
    response
}
