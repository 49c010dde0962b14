use fenced_core::{Answer, FencingToken, Mode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One thing that a [`Gate`](crate::Gate) must not forget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum GateEntry {
    /// The fence of a resource was raised.
    Raised {
        /// The resource.
        resource: String,
        /// To this token.
        token: FencingToken,
        /// By a holder of this mode.
        mode: Mode,
    },
    /// A request was applied.
    Applied(Applied),
    /// What is of smaller tokens was collected.
    Collected {
        /// The smallest token that still counts.
        floor: FencingToken,
    },
    /// Requests that were applied earlier were given up.
    Expired {
        /// Than this, in seconds since 1970.
        before: u64,
    },
    /// The fence of a resource was lowered or raised by hand.
    Reset {
        /// The resource.
        resource: String,
        /// To this token.
        token: FencingToken,
        /// Why.
        reason: String,
        /// When, in seconds since 1970.
        at: u64,
    },
    /// Requests under smaller tokens may have been given up: what a summary says of those that it
    /// leaves out.
    Forgotten {
        /// The smallest token of which all requests are known.
        below: FencingToken,
    },
}

/// A request that was applied, and what it was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Applied {
    /// Its id.
    pub id: String,
    /// Its digest.
    #[serde(with = "hex")]
    pub digest: [u8; 32],
    /// Under which token.
    pub token: FencingToken,
    /// When, in seconds since 1970.
    pub at: u64,
    /// The answer, as JSON.
    #[serde(serialize_with = "answer_out", deserialize_with = "answer_in")]
    pub answer: Answer,
}

impl Applied {
    /// What it takes of the memory, about.
    pub(crate) fn bytes(&self) -> usize {
        const FIXED: usize = 160;
        FIXED + self.id.len() * 2 + self.answer.as_json().len()
    }
}

fn answer_out<S: Serializer>(answer: &Answer, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(answer.as_json())
}

fn answer_in<'de, D: Deserializer<'de>>(from: D) -> Result<Answer, D::Error> {
    String::deserialize(from).map(Answer::from_json)
}

mod hex {
    use std::fmt::Write as _;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(64);
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        to.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(from)?;
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(D::Error::custom("a digest has 64 digits"));
        }
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(D::Error::custom)?;
        }
        Ok(bytes)
    }
}
