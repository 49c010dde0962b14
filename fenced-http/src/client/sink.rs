use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fenced_core::{
    BoxError, Fate, Fence, FencingSink, LockPath, Outcome, Request, SinkError, SinkId,
};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::{Client, ClientBuilder, Url};

use crate::client::reply::{Reply, Unanswered};
use crate::header::{
    CONTENT_DIGEST, Credential, FENCING_TOKEN, IDEMPOTENCY_KEY, RequestHeader, TokenHeader,
    content_digest_of,
};
use crate::resource;
use crate::{HttpAnswer, HttpWrite};

type Naming = dyn Fn(&LockPath) -> String + Send + Sync;

/// A service of yours that refuses stale requests, reached over a client of yours.
///
/// The service uses the layer of this crate, or keeps to its headers and answers: see
/// [the crate](crate). Nothing is repeated behind your back: take the client from
/// [`client_builder`], since another one may follow redirections and repeat requests.
///
/// ```no_run
/// use fenced_core::{MemoryLocks, Request, SinkError, section};
/// use fenced_http::{HttpSink, HttpWrite, client_builder};
///
/// # async fn open(locks: MemoryLocks) -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = HttpSink::new(client_builder().build()?, "http://gateway:8080")?;
/// section(&locks, "/locks/valves/7")
///     .run(async |guard| {
///         let valve = guard.fence(&gateway);
///         valve.claim().await?; // no older command is carried out from here on
///         let write = HttpWrite::post("/valves/7/commands").json("open")?;
///         let done = valve.write(Request::new("command-17", "open"), write).await?;
///         done.into_answer().json::<String>()
///     })
///     .await??;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a sink does nothing by itself"]
pub struct HttpSink {
    client: Client,
    base: String,
    claims: String,
    timeout: Duration,
    answer_limit: usize,
    naming: Option<Arc<Naming>>,
    credentials: Option<Arc<dyn Credentials>>,
    id: SinkId,
}

/// Gets somebody to vouch for a token: a service that looks at the lock itself and signs.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// The credential for this fence.
    ///
    /// # Errors
    /// Why there is none; the write is not sent then.
    async fn credential(&self, fence: &Fence) -> Result<Credential, BoxError>;
}

/// Why a URL cannot be a sink's base.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{url:?} cannot be the base of a sink: {reason}")]
pub struct HttpSinkError {
    url: String,
    reason: String,
}

/// A client that neither follows redirections nor repeats requests; add what else you need.
pub fn client_builder() -> ClientBuilder {
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
}

impl HttpSink {
    /// How long an answer is awaited unless told otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
    /// The longest answer that is read unless told otherwise, in bytes.
    pub const ANSWER_LIMIT: usize = 1 << 20;
    /// Where the server takes claims, below the base URL, unless told otherwise.
    pub const CLAIMS: &'static str = "/.fence";

    /// A sink for the service at `base`, such as `https://gateway/api`. Sends nothing.
    ///
    /// # Errors
    /// A [`HttpSinkError`] if `base` is no URL that paths can be added to.
    pub fn new(client: Client, base: &str) -> Result<Self, HttpSinkError> {
        let fail = |reason: String| HttpSinkError {
            url: base.chars().take(100).collect(),
            reason,
        };
        let url = Url::parse(base).map_err(|error| fail(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(fail("it is neither http nor https".to_owned()));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(fail("it has a query or a fragment".to_owned()));
        }
        Ok(Self {
            client,
            base: url.as_str().trim_end_matches('/').to_owned(),
            claims: Self::CLAIMS.to_owned(),
            timeout: Self::TIMEOUT,
            answer_limit: Self::ANSWER_LIMIT,
            naming: None,
            credentials: None,
            id: SinkId::unique(),
        })
    }

    /// How long an answer is awaited; a write without one is [`SinkError::Ambiguous`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The longest answer that is read, in bytes.
    pub fn answer_limit(mut self, bytes: usize) -> Self {
        self.answer_limit = bytes;
        self
    }

    /// Where the server takes claims, below the base URL, such as `/.fence`.
    pub fn claims_at(mut self, path: impl Into<String>) -> Self {
        self.claims = path.into();
        self
    }

    /// Names the fence of a lock other than by its path.
    ///
    /// Two locks must not share a name: their tokens would refuse each other.
    pub fn resource_by(
        mut self,
        name: impl Fn(&LockPath) -> String + Send + Sync + 'static,
    ) -> Self {
        self.naming = Some(Arc::new(name));
        self
    }

    /// Sends the credential of each token along, for servers that want one.
    pub fn credentials(mut self, credentials: impl Credentials + 'static) -> Self {
        self.credentials = Some(Arc::new(credentials));
        self
    }

    /// The header of a fence that somebody vouches for, if that is asked for.
    async fn vouched(&self, fence: &Fence) -> Result<HeaderValue, SinkError> {
        let credential = match &self.credentials {
            None => None,
            Some(from) => Some(from.credential(fence).await.map_err(SinkError::Retry)?),
        };
        shown(fence, credential)
    }

    fn url(&self, path: &str) -> Result<Url, SinkError> {
        let fail = |reason: String| {
            let url = path.chars().take(100).collect();
            SinkError::backend(HttpSinkError { url, reason })
        };
        if !path.starts_with('/') {
            return Err(fail("a path starts with `/`".to_owned()));
        }
        Url::parse(&format!("{}{path}", self.base)).map_err(|error| fail(error.to_string()))
    }

    async fn send(
        &self,
        request: reqwest::RequestBuilder,
        headers: HeaderMap,
    ) -> Result<Reply, Unanswered> {
        let response = request.headers(headers).timeout(self.timeout).send();
        Reply::receive(response.await?, self.answer_limit).await
    }
}

fn shown(fence: &Fence, credential: Option<Credential>) -> Result<HeaderValue, SinkError> {
    resource::check(&fence.resource).map_err(SinkError::backend)?;
    let token = TokenHeader {
        token: fence.token,
        resource: Some(fence.resource.clone()),
        mode: fence.mode,
        claimed: fence.claimed,
        credential,
    };
    Ok(token.write())
}

fn named(request: &Request) -> Result<RequestHeader, SinkError> {
    Ok(RequestHeader {
        digest: Some(*request.digest()?),
        id: request.id().to_owned(),
    })
}

#[async_trait]
impl FencingSink for HttpSink {
    type Write = HttpWrite;
    type Answer = HttpAnswer;

    async fn claim(&self, fence: &Fence) -> Result<(), SinkError> {
        let headers = HeaderMap::from_iter([(FENCING_TOKEN, self.vouched(fence).await?)]);
        let name = resource::encode(&fence.resource);
        let url = self.url(&format!("{}/{name}", self.claims))?;
        let reply = self.send(self.client.put(url), headers).await;
        reply.map_err(Unanswered::repeatable)?.claimed(fence)
    }

    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        write: HttpWrite,
    ) -> Result<Outcome<HttpAnswer>, SinkError> {
        let named = named(request)?;
        let mut headers = write.headers;
        headers.insert(FENCING_TOKEN, self.vouched(fence).await?);
        headers.insert(IDEMPOTENCY_KEY, named.write());
        headers.insert(CONTENT_DIGEST, content_digest_of(&write.body));
        let url = self.url(&write.path)?;
        let sent = self.client.request(write.method, url).body(write.body);
        let reply = self.send(sent, headers).await;
        reply
            .map_err(|error| error.of_write(request))?
            .written(fence, request)
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<HttpAnswer>, SinkError> {
        let mut headers = HeaderMap::new();
        headers.insert(IDEMPOTENCY_KEY, named(request)?.write());
        if let Some(fence) = request.fence() {
            // A holder that is late gets no credential any more, and may ask all the same.
            headers.insert(FENCING_TOKEN, shown(fence, None)?);
        }
        let asked = self.client.request(Method::GET, self.url(&self.claims)?);
        let reply = self.send(asked, headers).await;
        reply.map_err(Unanswered::repeatable)?.fate(request)
    }

    fn resource<'a>(&'a self, path: &'a LockPath) -> Cow<'a, str> {
        match &self.naming {
            Some(name) => name(path).into(),
            None => path.as_str().into(),
        }
    }

    fn id(&self) -> Option<SinkId> {
        Some(self.id)
    }
}

impl fmt::Debug for HttpSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password, the client its headers.
        f.debug_struct("HttpSink")
            .field("timeout", &self.timeout)
            .field("answer_limit", &self.answer_limit)
            .finish_non_exhaustive()
    }
}
