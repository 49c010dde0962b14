//! Refusals on the wire, as `application/problem+json` of RFC 9457.

use fenced_core::FencingToken;
use http::StatusCode;
use serde::{Deserialize, Serialize};

/// What a problem's type starts with; what follows is a name of the table.
pub(crate) const TYPES: &str = "https://github.com/fenced-rs/fenced#";
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident = $status:literal $name:literal $title:literal,)*) => {
        /// Why a server refused a fenced request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ProblemKind { $($(#[doc = $doc])* $kind,)* }

        impl ProblemKind {
            pub(crate) const ALL: &[Self] = &[$(Self::$kind),*];

            /// The status of the answer.
            #[must_use]
            pub fn status(self) -> StatusCode {
                let status = match self { $(Self::$kind => $status,)* };
                StatusCode::from_u16(status).expect("a status of the table")
            }

            /// What the problem's type ends in.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)* }
            }
        }
    };
}

kinds! {
    /// A fenced route was called without a token.
    TokenRequired = 428 "fencing-token-required" "Fencing token required",
    /// The token's header is malformed, or there twice.
    TokenInvalid = 400 "fencing-token-invalid" "Fencing token invalid",
    /// The token is for another resource, or nobody vouches for it.
    TokenRejected = 403 "fencing-token-rejected" "Fencing token rejected",
    /// A newer token was seen.
    Stale = 412 "stale-fencing-token" "Stale fencing token",
    /// The token is too far ahead to be true.
    Implausible = 403 "fencing-token-implausible" "Implausible fencing token",
    /// The fence of a holder that claimed it is missing or behind.
    NotClaimed = 409 "fence-not-claimed" "Fence not claimed",
    /// A request without an id, where one is required.
    KeyRequired = 400 "idempotency-key-required" "Idempotency key required",
    /// The request's id is malformed, or there twice.
    KeyInvalid = 400 "idempotency-key-invalid" "Idempotency key invalid",
    /// The id was used before, for something else.
    Mismatch = 422 "idempotency-mismatch" "Idempotency key used for another request",
    /// The same request is being worked on.
    InFlight = 409 "request-in-flight" "Request in flight",
    /// The body is not what its digest says, or that is malformed.
    DigestMismatch = 400 "content-digest-mismatch" "Content digest mismatch",
    /// The body broke off.
    Broken = 400 "content-broken" "Content broken",
    /// The body is longer than the server takes.
    TooLarge = 413 "content-too-large" "Content too large",
    /// The body did not arrive in time.
    TooSlow = 408 "content-too-slow" "Content too slow",
    /// An older holder's request is still under way.
    Busy = 503 "resource-busy" "Resource busy",
    /// The server asks to repeat the request.
    Retry = 503 "retry" "Retry",
    /// The server failed, and nothing was changed.
    Failed = 500 "resource-failed" "Resource failed",
    /// The server failed, and the request may have been applied.
    Unknown = 500 "outcome-unknown" "Outcome unknown",
    /// The route names no resource.
    NoResource = 404 "no-such-resource" "No such resource",
    /// The request was not applied, and cannot be any more.
    RequestAbsent = 404 "request-absent" "Request absent",
    /// The request was not applied yet.
    RequestUnknown = 404 "request-unknown" "Request unknown",
    /// The endpoint has no such method.
    Method = 405 "method-not-allowed" "Method not allowed",
}

/// The body of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Body {
    pub(crate) r#type: String,
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) detail: String,
    /// The newest token that the resource has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<FencingToken>,
    /// The token that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) yours: Option<FencingToken>,
}

impl Body {
    /// Which problem it is, if it is one of the table and has that one's status.
    pub(crate) fn kind(&self, status: StatusCode) -> Option<ProblemKind> {
        let name = self.r#type.strip_prefix(TYPES)?;
        let mut all = ProblemKind::ALL.iter().copied();
        all.find(|kind| kind.name() == name && kind.status() == status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_problems_have_one_name() {
        let names: std::collections::HashSet<_> =
            ProblemKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), ProblemKind::ALL.len());
    }
}
