use bytes::Bytes;
use fenced_core::{Fence, FencingToken, SinkError};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response};

use crate::ProblemKind;
use crate::header::{FENCED_OUTCOME, FENCING_TOKEN, token_value};
use crate::problem::{Body, MEDIA_TYPE, TYPES};

/// A refusal, as it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    kind: ProblemKind,
    detail: String,
    current: Option<FencingToken>,
    yours: Option<FencingToken>,
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            current: None,
            yours: None,
        }
    }

    /// Which refusal it is.
    #[must_use]
    pub fn kind(&self) -> ProblemKind {
        self.kind
    }

    /// What a sink's error means to the one who sent the request.
    ///
    /// The texts of causes stay in the log: they may tell more than the client is to know.
    #[must_use]
    pub fn of(error: &SinkError, fence: &Fence) -> Self {
        let resource = &fence.resource;
        let (kind, detail) = match error {
            SinkError::Stale { current, .. } => (
                ProblemKind::Stale,
                format!(
                    "`{resource}` has seen token {current}: this holder is late, and must start over under a new grant"
                ),
            ),
            SinkError::Implausible { .. } => (
                ProblemKind::Implausible,
                format!("the token is too far ahead of what `{resource}` has seen to be true"),
            ),
            SinkError::NotClaimed { .. } => (
                ProblemKind::NotClaimed,
                format!("the fence of `{resource}` that was claimed is missing or behind"),
            ),
            SinkError::Busy { .. } => (
                ProblemKind::Busy,
                format!("an older holder's request at `{resource}` is still under way: try again"),
            ),
            SinkError::RequestMismatch { .. } => (ProblemKind::Mismatch, used_before()),
            SinkError::InvalidRequest { reason, .. } => (ProblemKind::KeyInvalid, reason.clone()),
            SinkError::Ambiguous { .. } => (
                ProblemKind::Unknown,
                "the request may have been applied: repeat it with the same key".to_owned(),
            ),
            SinkError::Retry(_) | SinkError::Suspect { .. } => (
                ProblemKind::Retry,
                "the request could not be carried out now: repeat it with the same key".to_owned(),
            ),
            _ => (
                ProblemKind::Failed,
                "the resource failed, and nothing was changed".to_owned(),
            ),
        };
        if kind == ProblemKind::Failed {
            tracing::error!(%resource, %error, "a fenced request failed");
        } else {
            tracing::debug!(%resource, %error, "a fenced request was refused");
        }
        Self::new(kind, detail).tokens(error, fence)
    }

    fn tokens(mut self, error: &SinkError, fence: &Fence) -> Self {
        self.current = match error {
            SinkError::Stale { current, .. } => Some(*current),
            SinkError::Implausible { current, .. } => *current,
            _ => return self,
        };
        self.yours = Some(fence.token);
        self
    }

    /// The answer.
    pub(crate) fn response<B: From<Bytes>>(self) -> Response<B> {
        let status = self.kind.status();
        let body = Body {
            r#type: format!("{TYPES}{}", self.kind.name()),
            title: self.kind.title().to_owned(),
            status: status.as_u16(),
            detail: self.detail,
            current: self.current,
            yours: self.yours,
        };
        let json = serde_json::to_vec(&body).expect("a problem has a JSON form");
        let mut response = Response::new(B::from(json.into()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.kind {
            ProblemKind::InFlight | ProblemKind::Busy | ProblemKind::Retry => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            ProblemKind::Method => {
                headers.insert(ALLOW, HeaderValue::from_static("GET, PUT"));
            }
            _ => {}
        }
        if self.kind != ProblemKind::Unknown {
            headers.insert(FENCED_OUTCOME, HeaderValue::from_static("refused"));
        }
        if let Some(current) = self.current {
            headers.insert(FENCING_TOKEN, token_value(current));
        }
        response
    }
}

/// An id that stands for another request.
pub(crate) fn used_before() -> String {
    "the key was used before, for another request: use a new key for a new request".to_owned()
}
