use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use fenced_core::{Answer, SinkError};
use http::header::{
    CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, LOCATION,
};
use http::{HeaderValue, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a handler answered; kept with its request for those who repeat it.
///
/// ```
/// # use fenced_http::HttpAnswer;
/// fn left(answer: &HttpAnswer) -> Option<i64> {
///     answer.json().ok()
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpAnswer {
    /// The status: a success, or a redirection.
    pub status: StatusCode,
    /// Those of its headers that are kept, as [`KEPT`](Self::KEPT) lists them.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl HttpAnswer {
    /// The headers that are kept.
    pub const KEPT: [HeaderName; 5] = [
        CONTENT_TYPE,
        CONTENT_LANGUAGE,
        CONTENT_ENCODING,
        LOCATION,
        ETAG,
    ];

    /// An answer with those of `headers` that are kept.
    #[must_use]
    pub fn new(status: StatusCode, headers: &HeaderMap, body: Bytes) -> Self {
        let kept = |name: HeaderName| headers.get(&name).map(|value| (name, value.clone()));
        let headers = Self::KEPT.into_iter().filter_map(kept).collect();
        Self {
            status,
            headers,
            body,
        }
    }

    /// The body, read as JSON.
    ///
    /// # Errors
    /// [`SinkError::Backend`] if it is no `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, SinkError> {
        serde_json::from_slice(&self.body).map_err(SinkError::backend)
    }
}

/// An answer as a sink keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// Method and path: what else the same id must not be used for.
    pub(crate) target: String,
    status: u16,
    headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl Stored {
    pub(crate) fn of(target: &str, answer: &HttpAnswer) -> Result<Answer, SinkError> {
        let text = std::str::from_utf8(&answer.body).ok().map(str::to_owned);
        Answer::of(&Self {
            target: target.to_owned(),
            status: answer.status.as_u16(),
            headers: answer
                .headers
                .iter()
                .map(|(name, value)| {
                    let value = String::from_utf8_lossy(value.as_bytes());
                    (name.to_string(), value.into_owned())
                })
                .collect(),
            base64: text.is_none().then(|| BASE64.encode(&answer.body)),
            text,
        })
    }

    pub(crate) fn read(answer: &Answer) -> Result<Self, SinkError> {
        answer.decode()
    }

    pub(crate) fn into_answer(self) -> Result<HttpAnswer, SinkError> {
        let headers = self.headers.into_iter().filter_map(|(name, value)| {
            let name = HeaderName::try_from(name).ok()?;
            Some((name, HeaderValue::try_from(value).ok()?))
        });
        let body = match (self.text, self.base64) {
            (Some(text), _) => text.into(),
            (None, Some(bytes)) => BASE64.decode(bytes).map_err(SinkError::backend)?.into(),
            (None, None) => Bytes::new(),
        };
        Ok(HttpAnswer {
            status: StatusCode::from_u16(self.status).map_err(SinkError::backend)?,
            headers: headers.collect(),
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reads_as_it_was_kept() {
        for body in [&b""[..], b"{\"left\":7}", b"\0\xff", "ä\0".as_bytes()] {
            let headers = [(CONTENT_TYPE, "text/plain"), (http::header::SERVER, "x")]
                .map(|(name, value)| (name, HeaderValue::from_static(value)));
            let headers = headers.into_iter().collect();
            let answer =
                HttpAnswer::new(StatusCode::CREATED, &headers, Bytes::copy_from_slice(body));
            assert_eq!(answer.headers.len(), 1);
            let stored = Stored::read(&Stored::of("POST /a", &answer).unwrap()).unwrap();
            assert_eq!(stored.target, "POST /a");
            assert_eq!(stored.into_answer().unwrap(), answer);
        }
    }
}
