//! Tokens that somebody signed.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fenced_core::{Fence, Mode};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::Credential;

/// The shortest key, in bytes: a shorter one could be guessed.
const MIN_KEY: usize = 32;

/// Signs tokens by HMAC-SHA-256, for a server that knows the key.
///
/// It says who may raise fences, and is no stronger than its key is secret: keep it at a service
/// that looks at the lock before it signs, since a client with a key can sign what it likes. The
/// fence is compared all the same, and a credential can be replayed until it expires.
#[derive(Clone)]
pub struct TokenSigner {
    key: Key,
    audience: String,
    lifetime: Duration,
}

/// The keys that a server believes, by their ids: to rotate, add the new one, let signers change,
/// remove the old one.
#[derive(Clone)]
pub struct TokenKeys {
    keys: Vec<Key>,
    audience: String,
}

/// A key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key `{id}` has {bytes} bytes: take {MIN_KEY} random ones or more")]
pub struct WeakKey {
    id: String,
    bytes: usize,
}

#[derive(Clone)]
struct Key {
    id: String,
    mac: Hmac<Sha256>,
}

impl Key {
    fn new(id: &str, secret: &[u8]) -> Result<Self, WeakKey> {
        let weak = || WeakKey {
            id: id.to_owned(),
            bytes: secret.len(),
        };
        if secret.len() < MIN_KEY {
            return Err(weak());
        }
        let mac = Hmac::new_from_slice(secret).map_err(|_| weak())?;
        let id = id.to_owned();
        Ok(Self { id, mac })
    }

    /// Every field with its length, so that no two fences read the same.
    fn of(&self, audience: &str, fence: &Fence, expires: i64) -> Hmac<Sha256> {
        let mode = match fence.mode {
            Mode::Shared => "shared",
            _ => "exclusive",
        };
        let (token, expires) = (fence.token.to_string(), expires.to_string());
        let mut mac = self.mac.clone();
        for field in [
            "fenced token 1",
            audience,
            &fence.resource,
            mode,
            &token,
            &expires,
        ] {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field.as_bytes());
        }
        mac
    }
}

impl TokenSigner {
    /// How long a credential is good for unless told otherwise.
    pub const LIFETIME: Duration = Duration::from_secs(60);

    /// Signs for the servers called `audience`.
    ///
    /// # Errors
    /// [`WeakKey`] if the secret has fewer than 32 bytes.
    pub fn new(id: &str, secret: &[u8], audience: &str) -> Result<Self, WeakKey> {
        Ok(Self {
            key: Key::new(id, secret)?,
            audience: audience.to_owned(),
            lifetime: Self::LIFETIME,
        })
    }

    /// How long a credential is good for; about as long as a lease.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Vouches for a fence.
    #[must_use]
    pub fn sign(&self, fence: &Fence) -> Credential {
        let lifetime = i64::try_from(self.lifetime.as_secs()).unwrap_or(i64::MAX);
        let expires = now().saturating_add(lifetime).min(LAST);
        let mac = self.key.of(&self.audience, fence, expires);
        Credential {
            key: self.key.id.clone(),
            expires,
            signature: mac.finalize().into_bytes().to_vec(),
        }
    }
}

/// A date of a structured field has no more digits.
const LAST: i64 = 999_999_999_999_999;

#[cfg(feature = "client")]
#[async_trait::async_trait]
impl crate::Credentials for TokenSigner {
    async fn credential(&self, fence: &Fence) -> Result<Credential, fenced_core::BoxError> {
        Ok(self.sign(fence))
    }
}

impl TokenKeys {
    /// No keys yet, for the server called `audience`.
    #[must_use]
    pub fn new(audience: &str) -> Self {
        Self {
            keys: Vec::new(),
            audience: audience.to_owned(),
        }
    }

    /// With this key too.
    ///
    /// # Errors
    /// [`WeakKey`] if the secret has fewer than 32 bytes.
    pub fn key(mut self, id: &str, secret: &[u8]) -> Result<Self, WeakKey> {
        self.keys.push(Key::new(id, secret)?);
        Ok(self)
    }

    /// Whether one of the keys has signed this, and it has not expired. The comparison takes the
    /// same time wherever it fails.
    #[must_use]
    pub fn verify(&self, fence: &Fence, credential: &Credential) -> bool {
        let named = |key: &&Key| key.id == credential.key;
        let is_signed = self.keys.iter().filter(named).any(|key| {
            let mac = key.of(&self.audience, fence, credential.expires);
            mac.verify_slice(&credential.signature).is_ok()
        });
        is_signed && credential.expires > now()
    }

    #[cfg(feature = "server")]
    pub(crate) fn check(
        &self,
        fence: &Fence,
        credential: Option<&Credential>,
    ) -> Result<(), crate::Problem> {
        if credential.is_some_and(|credential| self.verify(fence, credential)) {
            return Ok(());
        }
        // No word on which of these it is.
        let detail = "the token's credential is missing, expired, or not signed by a known key";
        let kind = crate::ProblemKind::TokenRejected;
        Err(crate::Problem::new(kind, detail))
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

impl fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSigner")
            .field("key", &self.key.id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.keys.iter().map(|key| &key.id).collect();
        f.debug_struct("TokenKeys")
            .field("keys", &ids)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use fenced_core::FencingToken;

    use super::*;

    const SECRET: [u8; 32] = [7; 32];

    fn fence(resource: &str, token: i64) -> Fence {
        Fence::new(resource, FencingToken::try_from(token).unwrap())
    }

    #[test]
    fn what_was_signed_is_believed_until_it_expires() {
        let signer = TokenSigner::new("k1", &SECRET, "gateway").unwrap();
        let keys = TokenKeys::new("gateway").key("k1", &SECRET).unwrap();
        let own = fence("/a", 33);
        let credential = signer.sign(&own);
        assert!(keys.verify(&own, &credential));
        assert!(keys.verify(&own.clone().claimed(true), &credential));
        let expired = signer.lifetime(Duration::ZERO).sign(&own);
        assert!(!keys.verify(&own, &expired));
    }

    #[test]
    fn whatever_differs_is_not_believed() {
        let signer = TokenSigner::new("k1", &SECRET, "gateway").unwrap();
        let keys = TokenKeys::new("gateway").key("k1", &SECRET).unwrap();
        let credential = signer.sign(&fence("/a", 33));
        let mut shared = fence("/a", 33);
        shared.mode = Mode::Shared;
        for other in [fence("/a", 34), fence("/b", 33), fence("/a3", 3), shared] {
            assert!(!keys.verify(&other, &credential), "{other:?}");
        }
        let own = fence("/a", 33);
        for change in [
            |c: &mut Credential| c.key = "k2".to_owned(),
            |c: &mut Credential| c.expires += 1,
            |c: &mut Credential| c.signature[31] ^= 1,
            |c: &mut Credential| c.signature.truncate(31),
            |c: &mut Credential| c.signature.clear(),
        ] {
            let mut changed = credential.clone();
            change(&mut changed);
            assert!(!keys.verify(&own, &changed), "{changed:?}");
        }
        let elsewhere = TokenKeys::new("other").key("k1", &SECRET).unwrap();
        assert!(!elsewhere.verify(&own, &credential));
    }

    #[test]
    fn keys_rotate() {
        let (old, new) = ([1; 32], [2; 32]);
        let both = TokenKeys::new("g").key("old", &old).unwrap();
        let both = both.key("new", &new).unwrap();
        for (id, secret) in [("old", old), ("new", new)] {
            let credential = TokenSigner::new(id, &secret, "g")
                .unwrap()
                .sign(&fence("/a", 1));
            assert!(both.verify(&fence("/a", 1), &credential));
        }
        assert!(TokenKeys::new("g").key("short", &[1; 31]).is_err());
        assert!(!format!("{both:?}").contains('\u{1}'));
    }
}
