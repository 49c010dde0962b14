use std::fmt;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{Fence, SinkError};

/// A write as its caller names it, so that repeating it has no second effect.
///
/// The id is the caller's, the same for every repetition and by whichever holder; it must not hold
/// the token. The digest is of the payload: the same id with another payload is an error.
///
/// ```
/// use fenced_core::Request;
///
/// let order = ("sku-4711", 2);
/// let request = Request::new("order-17", &order);
/// assert_eq!(request.id(), "order-17");
/// assert_eq!(request.digest()?, Request::new("order-17", &order).digest()?);
/// # Ok::<(), fenced_core::SinkError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    id: String,
    digest: Result<[u8; 32], String>,
    fence: Option<Fence>,
}

impl Request {
    /// The longest id, in bytes.
    pub const MAX_ID_BYTES: usize = 255;

    /// Names a write by `id`, and by a SHA-256 of `payload`.
    ///
    /// The payload is digested in its JSON form, with the members of a map in order of their
    /// names, so that the order of a `HashMap` does not matter. JSON writes a float that is not
    /// finite as it writes a missing value: their digests are equal. What cannot be used is told when
    /// the request is: as [`SinkError::InvalidRequest`].
    pub fn new(id: impl fmt::Display, payload: &(impl Serialize + ?Sized)) -> Self {
        let id = id.to_string();
        let digest = check_id(&id).and_then(|()| digest(payload));
        Self {
            id,
            digest,
            fence: None,
        }
    }

    /// Names a write by `id`, with a digest that was made elsewhere.
    pub fn with_digest(id: impl fmt::Display, digest: [u8; 32]) -> Self {
        let id = id.to_string();
        let digest = check_id(&id).map(|()| digest);
        Self {
            id,
            digest,
            fence: None,
        }
    }

    /// Says under which fence the request was sent, for [`FencingSink::outcome`] to tell a request
    /// that is [absent](crate::Fate::Absent) for good from one that may still be under way.
    ///
    /// [`FencingSink::outcome`]: crate::FencingSink::outcome
    #[must_use]
    pub fn sent_under(mut self, fence: Fence) -> Self {
        self.fence = Some(fence);
        self
    }

    /// The fence under which the request was sent, if the caller said.
    #[must_use]
    pub fn fence(&self) -> Option<&Fence> {
        self.fence.as_ref()
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The digest. Sinks call this before they send anything.
    ///
    /// # Errors
    /// [`SinkError::InvalidRequest`] if the id or the payload cannot be used.
    pub fn digest(&self) -> Result<&[u8; 32], SinkError> {
        self.digest
            .as_ref()
            .map_err(|reason| SinkError::InvalidRequest {
                id: self.id.chars().take(40).collect(),
                reason: reason.clone(),
            })
    }

    /// The error for an answer to this request that got lost.
    #[must_use]
    pub fn ambiguous(&self) -> SinkError {
        SinkError::Ambiguous {
            request: Some(self.id.clone()),
        }
    }

    /// The error for an id that was used with another digest.
    #[must_use]
    pub fn mismatch(&self) -> SinkError {
        SinkError::RequestMismatch {
            id: self.id.clone(),
        }
    }
}

fn check_id(id: &str) -> Result<(), String> {
    match id {
        "" => Err("its id is empty".to_owned()),
        _ if id.len() > Request::MAX_ID_BYTES => Err(format!(
            "its id has {} bytes, more than the {} that are allowed",
            id.len(),
            Request::MAX_ID_BYTES
        )),
        _ if id.chars().any(char::is_control) => Err("its id holds a control character".to_owned()),
        _ => Ok(()),
    }
}

fn digest(payload: &(impl Serialize + ?Sized)) -> Result<[u8; 32], String> {
    let value = serde_json::to_value(payload)
        .map_err(|error| format!("its payload has no JSON form: {error}"))?;
    let mut hasher = Sha256::new();
    feed(&mut hasher, &value);
    Ok(hasher.finalize().into())
}

/// Every value goes in with its kind and length, so that no two payloads read the same.
fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Null => feed_text(hasher, b'0', ""),
        Value::Bool(bool) => feed_text(hasher, b'b', &bool.to_string()),
        Value::Number(number) => feed_text(hasher, b'n', &number.to_string()),
        Value::String(text) => feed_text(hasher, b's', text),
        Value::Array(items) => {
            feed_length(hasher, b'a', items.len());
            for item in items {
                feed(hasher, item);
            }
        }
        Value::Object(members) => {
            feed_length(hasher, b'o', members.len());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in members {
                feed_text(hasher, b'k', name);
                feed(hasher, member);
            }
        }
    }
}

fn feed_text(hasher: &mut Sha256, kind: u8, text: &str) {
    feed_length(hasher, kind, text.len());
    hasher.update(text);
}

fn feed_length(hasher: &mut Sha256, kind: u8, length: usize) {
    hasher.update([kind]);
    hasher.update((length as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn of(payload: &impl Serialize) -> [u8; 32] {
        *Request::new("r", payload).digest().unwrap()
    }

    #[test]
    fn equal_payloads_have_equal_digests() {
        let forward: HashMap<_, _> = (0..100).map(|i| (i.to_string(), i)).collect();
        let backward: HashMap<_, _> = (0..100).rev().map(|i| (i.to_string(), i)).collect();
        assert_eq!(of(&forward), of(&backward));
    }

    #[test]
    fn different_payloads_have_different_digests() {
        let all = [
            of(&()),
            of(&""),
            of(&"1"),
            of(&1),
            of(&-1),
            of(&true),
            of(&["a", "b"]),
            of(&["ab"]),
            of(&[["a"], ["b"]]),
            of(&HashMap::from([("a", "b")])),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn what_cannot_be_used_is_told_when_it_is_used() {
        let long = "x".repeat(256);
        for bad in ["", "a\nb", &long] {
            let error = Request::new(bad, &1).digest().unwrap_err();
            assert!(matches!(error, SinkError::InvalidRequest { .. }), "{error}");
        }
        let no_json = HashMap::from([((1, 2), 3)]);
        assert!(Request::new("r", &no_json).digest().is_err());
    }
}
