//! The headers of a fenced request, and of its answer.

use fenced_core::{FencingToken, Mode};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};

use crate::field::{Bare, Item, Malformed, member};

/// The token, as a String of decimal digits: an integer of a structured field is too short for it.
pub const FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");
/// The request's id.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The digest of the body, of RFC 9530.
pub const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
/// What became of a fenced request: `applied`, `replayed`, `refused`, `claimed`.
pub const FENCED_OUTCOME: HeaderName = HeaderName::from_static("fenced-outcome");

/// What `Fencing-Token` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenHeader {
    pub(crate) token: FencingToken,
    pub(crate) resource: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) claimed: bool,
    pub(crate) credential: Option<Credential>,
}

/// Who vouches for a token, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    pub(crate) key: String,
    /// In seconds since 1970.
    pub(crate) expires: i64,
    pub(crate) signature: Vec<u8>,
}

impl TokenHeader {
    pub(crate) fn read(headers: &HeaderMap) -> Result<Option<Self>, Malformed> {
        let Some(value) = only(headers, &FENCING_TOKEN)? else {
            return Ok(None);
        };
        let mut item = Item::parse(value.as_bytes())?;
        let token = match &item.value {
            Bare::Text(digits) => digits.parse(),
            _ => return Err(Malformed("it is no string: quote the number")),
        };
        Ok(Some(Self {
            token: token.map_err(|_| {
                Malformed("its string is no decimal number from 1 to 9223372036854775807")
            })?,
            resource: match item.take("r") {
                None => None,
                Some(Bare::Text(resource)) => Some(resource),
                Some(_) => return Err(Malformed("`r` is no string")),
            },
            mode: match item.take("mode") {
                None => Mode::Exclusive,
                Some(Bare::Token(mode)) if mode == "exclusive" => Mode::Exclusive,
                Some(Bare::Token(mode)) if mode == "shared" => Mode::Shared,
                Some(_) => return Err(Malformed("`mode` is neither exclusive nor shared")),
            },
            claimed: match item.take("claimed") {
                None => false,
                Some(Bare::Boolean(claimed)) => claimed,
                Some(_) => return Err(Malformed("`claimed` is no boolean")),
            },
            credential: credential(&mut item)?,
        }))
    }

    pub(crate) fn write(&self) -> HeaderValue {
        let mut item = Item::new(Bare::Text(self.token.to_string()));
        if let Some(resource) = &self.resource {
            item = item.with("r", Bare::Text(resource.clone()));
        }
        if self.mode == Mode::Shared {
            item = item.with("mode", Bare::Token("shared".to_owned()));
        }
        if self.claimed {
            item = item.with("claimed", Bare::Boolean(true));
        }
        if let Some(credential) = &self.credential {
            item = item
                .with("kid", Bare::Text(credential.key.clone()))
                .with("exp", Bare::Date(credential.expires))
                .with("sig", Bare::Bytes(credential.signature.clone()));
        }
        value(&item)
    }
}

fn credential(item: &mut Item) -> Result<Option<Credential>, Malformed> {
    match (item.take("kid"), item.take("exp"), item.take("sig")) {
        (None, None, None) => Ok(None),
        (Some(Bare::Text(key)), Some(Bare::Date(expires)), Some(Bare::Bytes(signature))) => {
            Ok(Some(Credential {
                key,
                expires,
                signature,
            }))
        }
        _ => Err(Malformed(
            "`kid`, `exp` and `sig` are not a string, a date and bytes",
        )),
    }
}

/// What `Idempotency-Key` says: the id, and as its parameter `d` the digest of what is asked for,
/// where that is not simply the digest of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHeader {
    pub(crate) id: String,
    pub(crate) digest: Option<[u8; 32]>,
}

impl RequestHeader {
    pub(crate) fn read(headers: &HeaderMap) -> Result<Option<Self>, Malformed> {
        let Some(value) = only(headers, &IDEMPOTENCY_KEY)? else {
            return Ok(None);
        };
        let mut item = Item::parse(value.as_bytes())?;
        let digest = match item.take("d") {
            None => None,
            Some(Bare::Bytes(bytes)) => Some(sha256(&bytes)?),
            Some(_) => return Err(Malformed("`d` is no byte sequence")),
        };
        match item.value {
            Bare::Text(id) => Ok(Some(Self { id, digest })),
            _ => Err(Malformed("it is no string: quote it")),
        }
    }

    pub(crate) fn write(&self) -> HeaderValue {
        let item = Item::new(Bare::Text(self.id.clone()));
        value(&match self.digest {
            Some(digest) => item.with("d", Bare::Bytes(digest.to_vec())),
            None => item,
        })
    }
}

/// The SHA-256 that `Content-Digest` tells, if it tells one.
pub(crate) fn content_digest(headers: &HeaderMap) -> Result<Option<[u8; 32]>, Malformed> {
    let Some(value) = only(headers, &CONTENT_DIGEST)? else {
        return Ok(None);
    };
    match member(value.as_bytes(), "sha-256")? {
        None => Ok(None),
        Some(Bare::Bytes(bytes)) => sha256(&bytes).map(Some),
        Some(_) => Err(Malformed("`sha-256` is no byte sequence")),
    }
}

pub(crate) fn digest(body: &[u8]) -> [u8; 32] {
    Sha256::digest(body).into()
}

/// The value of `Content-Digest`.
pub(crate) fn content_digest_of(body: &[u8]) -> HeaderValue {
    let bytes = Item::new(Bare::Bytes(digest(body).to_vec())).write();
    HeaderValue::try_from(format!("sha-256={bytes}")).expect("base64 is no odd text")
}

/// The token alone, as on every fenced answer.
pub(crate) fn token_value(token: FencingToken) -> HeaderValue {
    value(&Item::new(Bare::Text(token.to_string())))
}

fn value(item: &Item) -> HeaderValue {
    HeaderValue::try_from(item.write()).expect("a structured field is visible ASCII")
}

fn sha256(bytes: &[u8]) -> Result<[u8; 32], Malformed> {
    let digest = bytes.try_into();
    digest.map_err(|_| Malformed("a digest is not 32 bytes long"))
}

/// The value of a header that may be there once.
fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a HeaderValue>, Malformed> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Malformed("it is there more than once")),
        (value, None) => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let value = |value: &&str| (name.clone(), HeaderValue::from_str(value).unwrap());
        values.iter().map(value).collect()
    }

    fn token(values: &[&str]) -> Result<Option<TokenHeader>, Malformed> {
        TokenHeader::read(&headers(&FENCING_TOKEN, values))
    }

    #[test]
    fn a_token_reads_as_it_was_written() {
        let credential = Credential {
            key: "k1".to_owned(),
            expires: 1_767_225_600,
            signature: vec![1; 32],
        };
        let written = TokenHeader {
            token: FencingToken::MAX,
            resource: Some("/locks/ä \"b\"".to_owned()),
            mode: Mode::Shared,
            claimed: true,
            credential: Some(credential),
        };
        let value = written.write();
        assert_eq!(token(&[value.to_str().unwrap()]), Ok(Some(written)));
    }

    #[test]
    fn a_plain_token_is_enough_and_unknown_parameters_are_skipped() {
        let read = token(&[r#""33";later=@5"#]).unwrap().unwrap();
        assert_eq!(read.token.get(), 33);
        assert_eq!((read.resource, read.mode), (None, Mode::Exclusive));
        assert_eq!(token(&[]), Ok(None));
    }

    #[test]
    fn a_malformed_token_is_refused() {
        for bad in [
            "33",
            "\"\"",
            "\"0\"",
            "\"033\"",
            "\"-1\"",
            "\"9223372036854775808\"",
            "\"123456789012345678901\"",
            "\"1e3\"",
            "\"33\";r=5",
            "\"33\";mode=both",
            "\"33\";mode=\"shared\"",
            "\"33\";claimed=5",
            "\"33\";kid=\"a\"",
            "\"33\";kid=\"a\";exp=5;sig=:YQ==:",
        ] {
            assert!(token(&[bad]).is_err(), "{bad}");
        }
        assert!(token(&["\"33\"", "\"33\""]).is_err());
    }

    #[test]
    fn a_request_reads_as_it_was_written() {
        for digest in [None, Some([7; 32])] {
            let id = "order/ä 17".to_owned();
            let written = RequestHeader { id, digest };
            let value = written.write();
            let read = RequestHeader::read(&headers(&IDEMPOTENCY_KEY, &[value.to_str().unwrap()]));
            assert_eq!(read, Ok(Some(written)));
        }
        for bad in ["8e03978e", "\"a\";d=:YQ==:", "\"a\";d=5"] {
            let read = RequestHeader::read(&headers(&IDEMPOTENCY_KEY, &[bad]));
            assert!(read.is_err(), "{bad}");
        }
    }

    #[test]
    fn a_content_digest_reads_as_it_was_written() {
        let value = content_digest_of(b"body");
        let read = content_digest(&headers(&CONTENT_DIGEST, &[value.to_str().unwrap()]));
        assert_eq!(read, Ok(Some(digest(b"body"))));
        let short = content_digest(&headers(&CONTENT_DIGEST, &["sha-256=:YQ==:"]));
        assert!(short.is_err());
    }
}
