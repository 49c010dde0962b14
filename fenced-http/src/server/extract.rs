//! What axum's handlers take.

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use fenced_core::Fence;
use http::StatusCode;
use http::request::Parts;

use crate::header::TokenHeader;
use crate::server::admit;
use crate::{Held, Problem};

impl<T: Send + Sync + 'static, State: Sync> FromRequestParts<State> for Held<T> {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &State) -> Result<Self, Self::Rejection> {
        let held = parts.extensions.get::<Self>().cloned();
        held.ok_or_else(|| {
            let detail = "the route of a handler that takes Held has no layer of this sink's fence";
            tracing::error!(path = parts.uri.path(), "{detail}");
            (StatusCode::INTERNAL_SERVER_ERROR, detail)
        })
    }
}

/// The token of a request on a route without a layer, for a handler that shows it to a sink itself,
/// or passes it on to another service.
///
/// Nothing was compared yet: it must be shown to a sink, by [`at`](Self::at) the resource.
#[derive(Debug)]
#[must_use = "nothing was compared yet"]
pub struct PassedFence {
    token: TokenHeader,
    is_used: bool,
}

impl PassedFence {
    /// The fence to show to a sink; `resource` comes from the route.
    ///
    /// # Errors
    /// A [`Problem`], to be returned by the handler, if the token is for another resource.
    pub fn at(mut self, resource: &str) -> Result<Fence, Problem> {
        self.is_used = true;
        self.token.at(resource)
    }

    /// As [`at`](Self::at), for a token that one of `keys` must have signed.
    ///
    /// # Errors
    /// As [`at`](Self::at), and if nobody has.
    #[cfg(feature = "hmac")]
    pub fn signed_at(mut self, resource: &str, keys: &crate::TokenKeys) -> Result<Fence, Problem> {
        self.is_used = true;
        let fence = self.token.at(resource)?;
        keys.check(&fence, self.token.credential.as_ref())?;
        Ok(fence)
    }
}

impl Drop for PassedFence {
    fn drop(&mut self) {
        if !self.is_used {
            tracing::warn!(token = %self.token.token, "a fence was passed on and not shown to a sink");
        }
    }
}

impl<State: Sync> FromRequestParts<State> for PassedFence {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &State) -> Result<Self, Problem> {
        let token = admit::token(&parts.headers)?;
        Ok(Self {
            token,
            is_used: false,
        })
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.response()
    }
}
