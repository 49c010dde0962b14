use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fenced_core::{Fate, Fence, Outcome, Request, SinkError};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, StatusCode};

use crate::header::FENCED_OUTCOME;
use crate::problem::{Body, MEDIA_TYPE};
use crate::{HttpAnswer, ProblemKind};

/// How a server refused, or failed; what is behind a [`SinkError::Backend`] or
/// [`SinkError::Retry`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server answered {status}: {detail}")]
#[non_exhaustive]
pub struct HttpRefusal {
    /// The status.
    pub status: StatusCode,
    /// Which refusal of the fence it is; none where the handler refused, or something on the way.
    pub kind: Option<ProblemKind>,
    /// What the server says, or what that means.
    pub detail: String,
    /// When to repeat it.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Bytes,
}

/// No whole answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unanswered {
    #[error("the server could not be reached")]
    NotSent(#[source] reqwest::Error),
    #[error("the server did not answer")]
    Lost(#[source] reqwest::Error),
    #[error("the answer ({status}) has more than the {limit} bytes that are read")]
    TooLong { status: StatusCode, limit: usize },
}

impl From<reqwest::Error> for Unanswered {
    fn from(error: reqwest::Error) -> Self {
        // Its URL may hold a password.
        let error = error.without_url();
        if error.is_connect() || error.is_builder() {
            Self::NotSent(error)
        } else {
            Self::Lost(error)
        }
    }
}

impl Unanswered {
    /// For a call that may be repeated.
    pub(crate) fn repeatable(self) -> SinkError {
        match self {
            Self::TooLong { .. } => SinkError::backend(self),
            _ => SinkError::Retry(self.into()),
        }
    }

    /// For a write, which may have happened.
    pub(crate) fn of_write(self, request: &Request) -> SinkError {
        match self {
            Self::NotSent(_) => SinkError::Retry(self.into()),
            Self::Lost(error) => {
                tracing::debug!(request = request.id(), %error, "no answer to a write");
                request.ambiguous()
            }
            Self::TooLong { .. } => SinkError::backend(self),
        }
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Reply {
    pub(crate) async fn receive(
        mut response: reqwest::Response,
        limit: usize,
    ) -> Result<Self, Unanswered> {
        let status = response.status();
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > limit {
                return Err(Unanswered::TooLong { status, limit });
            }
            body.extend_from_slice(&chunk);
        }
        let headers = std::mem::take(response.headers_mut());
        Ok(Self {
            status,
            headers,
            body: body.freeze(),
        })
    }

    pub(crate) fn claimed(self, fence: &Fence) -> Result<(), SinkError> {
        match self.problem() {
            Some((kind, body)) => Err(self.refused(kind, &body, fence, None)),
            None if self.outcome() == Some("claimed") => Ok(()),
            None if self.may_pass() => Err(SinkError::Retry(self.foreign().into())),
            None => Err(SinkError::backend(self.foreign())),
        }
    }

    pub(crate) fn written(
        self,
        fence: &Fence,
        request: &Request,
    ) -> Result<Outcome<HttpAnswer>, SinkError> {
        if let Some((kind, body)) = self.problem() {
            return Err(self.refused(kind, &body, fence, Some(request)));
        }
        match self.outcome() {
            Some("applied") => Ok(Outcome::Applied(self.into_answer())),
            Some("replayed") => Ok(Outcome::Replayed(self.into_answer())),
            Some("refused") => Err(SinkError::backend(
                self.refusal(None, "its handler refused"),
            )),
            _ if self.status.is_success() => Err(SinkError::backend(self.unfenced())),
            _ if self.status.is_server_error() => Err(request.ambiguous()),
            _ if self.may_pass() => Err(SinkError::Retry(self.foreign().into())),
            _ => Err(SinkError::backend(self.foreign())),
        }
    }

    pub(crate) fn fate(self, request: &Request) -> Result<Fate<HttpAnswer>, SinkError> {
        match self.problem() {
            Some((ProblemKind::RequestAbsent, _)) => Ok(Fate::Absent),
            Some((ProblemKind::RequestUnknown, _)) => Ok(Fate::Unknown),
            Some((ProblemKind::Mismatch, _)) => Err(request.mismatch()),
            Some((ProblemKind::Retry | ProblemKind::Busy, body)) => {
                Err(SinkError::Retry(self.refusal(None, &body.detail).into()))
            }
            Some((kind, body)) => Err(SinkError::backend(self.refusal(Some(kind), &body.detail))),
            None if self.outcome() == Some("applied") => Ok(Fate::Applied(self.into_answer())),
            None if self.may_pass() => Err(SinkError::Retry(self.foreign().into())),
            None => Err(SinkError::backend(self.foreign())),
        }
    }

    /// A refusal of the fence, which says so by its type; a status alone may come from a proxy.
    fn problem(&self) -> Option<(ProblemKind, Body)> {
        let media_type = self.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let media_type = media_type.split(';').next()?.trim();
        if !media_type.eq_ignore_ascii_case(MEDIA_TYPE) {
            return None;
        }
        let body: Body = serde_json::from_slice(&self.body).ok()?;
        Some((body.kind(self.status)?, body))
    }

    fn refused(
        &self,
        kind: ProblemKind,
        body: &Body,
        fence: &Fence,
        request: Option<&Request>,
    ) -> SinkError {
        let (mine, resource) = (fence.token, fence.resource.clone());
        let refusal = || self.refusal(Some(kind), &body.detail);
        match (kind, body.current, request) {
            (ProblemKind::Stale, Some(current), _) if current > mine => {
                SinkError::Stale { mine, current }
            }
            (ProblemKind::Implausible, current, _) => SinkError::Implausible { mine, current },
            (ProblemKind::NotClaimed, ..) => SinkError::NotClaimed { resource },
            (ProblemKind::Busy, ..) => SinkError::Busy {
                resource,
                pids: Vec::new(),
            },
            (ProblemKind::Retry | ProblemKind::InFlight, ..) | (ProblemKind::Unknown, _, None) => {
                SinkError::Retry(refusal().into())
            }
            (ProblemKind::Mismatch, _, Some(request)) => request.mismatch(),
            (ProblemKind::Unknown, _, Some(request)) => request.ambiguous(),
            _ => SinkError::backend(refusal()),
        }
    }

    fn outcome(&self) -> Option<&str> {
        self.headers.get(FENCED_OUTCOME)?.to_str().ok()
    }

    /// Whether something on the way says that it may be better later.
    fn may_pass(&self) -> bool {
        matches!(self.status.as_u16(), 429 | 502 | 503 | 504)
    }

    fn into_answer(self) -> HttpAnswer {
        HttpAnswer::new(self.status, &self.headers, self.body)
    }

    fn foreign(&self) -> HttpRefusal {
        let detail = "no layer of the fence has seen the request: check the URL, the way to the \
            server, and that the route has the layer";
        self.refusal(None, detail)
    }

    fn unfenced(&self) -> HttpRefusal {
        let detail = "the write happened, but nothing says that a fence was checked: give the \
            route the layer";
        self.refusal(None, detail)
    }

    fn refusal(&self, kind: Option<ProblemKind>, detail: &str) -> HttpRefusal {
        let shown = detail.chars().filter(|c| !c.is_control()).take(500);
        let retry_after = self.headers.get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        HttpRefusal {
            status: self.status,
            kind,
            detail: shown.collect(),
            retry_after: retry_after.map(Duration::from_secs),
            body: self.body.clone(),
        }
    }
}
