//! Who is let in, before anything is opened.

use fenced_core::{Fence, Opened, Request, SinkError, TransactionalSink};
use http::HeaderMap;
use http::request::Parts;

use crate::field::Malformed;
use crate::header::{RequestHeader, TokenHeader};
use crate::server::fence_server::Shared;
use crate::{Authority, Problem, ProblemKind, Route, resource};

/// The token of a request that must have one.
pub(crate) fn token(headers: &HeaderMap) -> Result<TokenHeader, Problem> {
    let invalid = |Malformed(reason)| {
        let detail = format!("Fencing-Token: {reason}");
        Problem::new(ProblemKind::TokenInvalid, detail)
    };
    let Some(token) = TokenHeader::read(headers).map_err(invalid)? else {
        let detail = "send the token of your lock as Fencing-Token: \"NUMBER\"";
        return Err(Problem::new(ProblemKind::TokenRequired, detail));
    };
    match &token.resource {
        Some(name) => resource::check(name)
            .map(|()| token)
            .map_err(|error| Problem::new(ProblemKind::TokenInvalid, error.to_string())),
        None => Ok(token),
    }
}

/// The request's id and digest, if it has an id.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<RequestHeader>, Problem> {
    RequestHeader::read(headers).map_err(|Malformed(reason)| {
        let detail = format!("Idempotency-Key: {reason}");
        Problem::new(ProblemKind::KeyInvalid, detail)
    })
}

impl TokenHeader {
    /// The fence at `resource`, for which the token must be.
    pub(crate) fn at(&self, resource: &str) -> Result<Fence, Problem> {
        if self.resource.as_deref().is_some_and(|r| r != resource) {
            let detail = format!("the token is for another resource than `{resource}`");
            return Err(Problem::new(ProblemKind::TokenRejected, detail));
        }
        let mut fence = Fence::new(resource, self.token).claimed(self.claimed);
        fence.mode = self.mode;
        Ok(fence)
    }
}

impl<S: TransactionalSink> Shared<S> {
    /// The fence of a request to `route`.
    pub(crate) fn fence(&self, parts: &Parts, route: &Route) -> Result<Fence, Problem> {
        let token = token(&parts.headers)?;
        let Some(resource) = route.resource(parts) else {
            let detail = "the path names no resource that can be fenced";
            return Err(Problem::new(ProblemKind::NoResource, detail));
        };
        self.credible(&token, &resource)
    }

    /// The fence at `resource`, whose token is for that, and signed if it has to be.
    pub(crate) fn credible(&self, token: &TokenHeader, resource: &str) -> Result<Fence, Problem> {
        let ours = self.options.resources.as_deref();
        if ours.is_some_and(|is_ours| !is_ours(resource)) {
            let detail = format!("`{resource}` is not served here");
            return Err(Problem::new(ProblemKind::TokenRejected, detail));
        }
        let fence = token.at(resource)?;
        #[cfg(feature = "hmac")]
        if let Some(keys) = &self.options.keys {
            keys.check(&fence, token.credential.as_ref())?;
        }
        Ok(fence)
    }

    /// Opens a transaction, after somebody has vouched for a token that raises the fence.
    pub(crate) async fn open(
        &self,
        fence: &Fence,
        request: Option<&Request>,
    ) -> Result<Opened<S::Transaction>, Problem> {
        if let Some(authority) = &self.options.authority {
            match self.open_raised(fence, request).await? {
                Some(opened) => return Ok(opened),
                None => vouched(&**authority, fence).await?,
            }
        }
        let opened = self.sink.open(fence, request).await;
        opened.map_err(|error| Problem::of(&error, fence))
    }

    /// Raises the fence.
    pub(crate) async fn claim(&self, fence: &Fence) -> Result<(), Problem> {
        if let Some(authority) = &self.options.authority {
            if self.open_raised(fence, None).await?.is_some() {
                return Ok(());
            }
            vouched(&**authority, fence).await?;
        }
        let claimed = self.sink.claim(fence).await;
        claimed.map_err(|error| Problem::of(&error, fence))
    }

    /// Opens a transaction where the fence is raised already: nobody is to be asked then, and who
    /// is late is told so.
    async fn open_raised(
        &self,
        fence: &Fence,
        request: Option<&Request>,
    ) -> Result<Option<Opened<S::Transaction>>, Problem> {
        let raised = fence.clone().claimed(true);
        match self.sink.open(&raised, request).await {
            Ok(opened) => Ok(Some(opened)),
            Err(SinkError::NotClaimed { .. }) => Ok(None),
            Err(error) => Err(Problem::of(&error, fence)),
        }
    }
}

async fn vouched(authority: &dyn Authority, fence: &Fence) -> Result<(), Problem> {
    match authority.vouches_for(fence).await {
        Ok(true) => Ok(()),
        Ok(false) => {
            let detail = format!("nobody vouches for the token at `{}`", fence.resource);
            Err(Problem::new(ProblemKind::TokenRejected, detail))
        }
        Err(cause) => Err(Problem::of(&SinkError::Retry(cause), fence)),
    }
}
