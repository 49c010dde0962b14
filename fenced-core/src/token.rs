use std::fmt;
use std::num::NonZeroI64;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number that grows with every grant of one lock path.
///
/// It lies in `1..=i64::MAX`, so that it fits a `BIGINT`, and is written in decimal: as text in
/// JSON, since a float would round it. A resource that has seen a token refuses every smaller one.
///
/// A token comes from a lock service. Anything else that happens to grow (a timestamp, a UUID, a
/// counter in memory) is not one, because two holders could get equal or swapped values.
///
/// ```
/// use fenced_core::FencingToken;
///
/// let token = FencingToken::try_from(4_294_967_339_i64)?;
/// assert_eq!(token.to_string(), "4294967339");
/// assert!(FencingToken::try_from(0_i64).is_err());
/// assert!(FencingToken::try_from(u64::MAX).is_err());
/// # Ok::<(), fenced_core::TokenError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(NonZeroI64);

impl FencingToken {
    /// The largest token.
    pub const MAX: Self = Self(NonZeroI64::MAX);

    /// The number a resource compares.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0.get()
    }
}

/// A number or text that is not a fencing token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a fencing token: a token is a whole number from 1 to 9223372036854775807, in decimal and without a leading zero"
)]
pub struct TokenError(String);

impl TryFrom<i64> for FencingToken {
    type Error = TokenError;

    fn try_from(number: i64) -> Result<Self, TokenError> {
        NonZeroI64::new(number)
            .filter(|number| number.is_positive())
            .map(Self)
            .ok_or_else(|| TokenError(number.to_string()))
    }
}

impl TryFrom<u64> for FencingToken {
    type Error = TokenError;

    fn try_from(number: u64) -> Result<Self, TokenError> {
        i64::try_from(number)
            .map_err(|_| TokenError(number.to_string()))
            .and_then(Self::try_from)
    }
}

impl FromStr for FencingToken {
    type Err = TokenError;

    /// Reads canonical decimal text: no sign, no leading zero, no space.
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let fail = || TokenError(text.chars().take(24).collect());
        if text.starts_with('0') || text.len() > 19 || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(fail());
        }
        let number: i64 = text.parse().map_err(|_| fail())?;
        Self::try_from(number)
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for FencingToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FencingToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_in_every_notation() {
        assert_eq!(FencingToken::try_from(i64::MAX), Ok(FencingToken::MAX));
        for bad in [0, -1, i64::MIN] {
            assert!(FencingToken::try_from(bad).is_err(), "{bad}");
        }
        for bad in [0, u64::MAX, 1 << 63] {
            assert!(FencingToken::try_from(bad).is_err(), "{bad}");
        }
        let long = "1".repeat(10_000);
        for bad in [
            "",
            "0",
            "01",
            "-1",
            "+1",
            " 1",
            "1e3",
            "9223372036854775808",
            &long,
        ] {
            assert!(bad.parse::<FencingToken>().is_err(), "{bad}");
        }
    }

    #[test]
    fn json_carries_text() {
        let token: FencingToken = "9007199254740993".parse().unwrap();
        let json = serde_json::to_string(&token).unwrap();
        assert_eq!(json, "\"9007199254740993\"");
        assert_eq!(serde_json::from_str::<FencingToken>(&json).unwrap(), token);
        assert!(serde_json::from_str::<FencingToken>("9007199254740993").is_err());
    }
}
