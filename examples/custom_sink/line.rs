use fenced::{Fence, FencingToken};
use serde::{Deserialize, Serialize};

/// A change of what is on a shelf.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Movement {
    Add(i64),
    Set(i64),
}

impl Movement {
    pub(crate) fn apply(self, count: i64) -> i64 {
        match self {
            Self::Add(amount) => count.saturating_add(amount),
            Self::Set(count) => count,
        }
    }
}

/// One line of the journal, in JSON: whose it is, and what came of it unless it is only a claim.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) resource: String,
    pub(crate) token: FencingToken,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) moved: Option<Moved>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Moved {
    pub(crate) request: String,
    pub(crate) digest: Vec<u8>,
    pub(crate) count: i64,
}

impl Line {
    pub(crate) fn claim(fence: &Fence) -> Self {
        Self {
            resource: fence.resource.clone(),
            token: fence.token,
            moved: None,
        }
    }

    pub(crate) fn moved(fence: &Fence, request: &str, digest: &[u8; 32], count: i64) -> Self {
        Self {
            moved: Some(Moved {
                request: request.to_owned(),
                digest: digest.to_vec(),
                count,
            }),
            ..Self::claim(fence)
        }
    }
}
