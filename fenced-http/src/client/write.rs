use bytes::Bytes;
use fenced_core::SinkError;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Serialize;

/// One request to a fenced route.
///
/// ```
/// use fenced_http::HttpWrite;
///
/// let write = HttpWrite::post("/devices/7/commands").json(&("open", 40))?;
/// # Ok::<(), fenced_core::SinkError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is sent yet"]
pub struct HttpWrite {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl HttpWrite {
    /// A request to `path`, below the sink's base URL: percent-encoded, and with its query.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    /// A POST.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// A PUT.
    pub fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path)
    }

    /// A PATCH.
    pub fn patch(path: impl Into<String>) -> Self {
        Self::new(Method::PATCH, path)
    }

    /// A DELETE.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// With this body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// With the JSON form of `value` as its body.
    ///
    /// # Errors
    /// [`SinkError::Backend`] if the value has none.
    pub fn json(self, value: &(impl Serialize + ?Sized)) -> Result<Self, SinkError> {
        let json = serde_json::to_vec(value).map_err(SinkError::backend)?;
        Ok(self
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(json))
    }

    /// With this header, which takes the place of one of the same name. Those of the fence are set
    /// by the sink.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}
