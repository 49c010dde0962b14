use fenced_core::{Answer, Fence, Request, SinkError};
use redis::Value;

const DIGEST_BYTES: usize = 32;

/// What is kept of a request that was applied: its digest, the token under which it was, a space,
/// and the answer.
pub(crate) struct Kept;

impl Kept {
    /// All but the answer.
    pub(crate) fn head(request: &Request, fence: &Fence) -> Result<Vec<u8>, SinkError> {
        let mut head = request.digest()?.to_vec();
        head.extend_from_slice(fence.token.to_string().as_bytes());
        head.push(b' ');
        Ok(head)
    }

    /// A script may answer with bytes that are no text.
    pub(crate) fn answer(json: &[u8]) -> Answer {
        Answer::from_json(String::from_utf8_lossy(json))
    }

    /// The answer that is kept, if it is one to this very request.
    pub(crate) fn read(kept: &[u8], request: &Request) -> Result<Answer, SinkError> {
        let unreadable = || {
            let id = request.id();
            SinkError::backend(format!(
                "what is kept of the request `{id}` cannot be read: something else wrote its key"
            ))
        };
        let (digest, rest) = kept.split_at_checked(DIGEST_BYTES).ok_or_else(unreadable)?;
        if digest != request.digest()? {
            return Err(request.mismatch());
        }
        let space = rest.iter().position(|&byte| byte == b' ');
        let space = space.ok_or_else(unreadable)?;
        Ok(Self::answer(&rest[space + 1..]))
    }

    /// The same, as a script replies.
    pub(crate) fn read_reply(
        reply: &[Value],
        request: Option<&Request>,
    ) -> Result<Answer, SinkError> {
        match (reply, request) {
            ([Value::BulkString(kept)], Some(request)) => Self::read(kept, request),
            _ => Err(SinkError::backend("the server replied what no script does")),
        }
    }
}
