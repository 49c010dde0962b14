use fenced_core::{Fence, SinkError};

/// The longest name of a resource, in bytes.
const MAX_BYTES: usize = 1_024;

/// A fence may come from another service.
pub(crate) fn check(fence: &Fence) -> Result<(), SinkError> {
    let reason = match fence.resource.as_str() {
        "" => "it is empty",
        name if name.len() > MAX_BYTES => "it is longer than 1024 bytes",
        name if name.chars().any(char::is_control) => "it holds a control character",
        _ => return Ok(()),
    };
    let resource: String = fence.resource.escape_debug().take(80).collect();
    Err(SinkError::backend(format!(
        "`{resource}` cannot name a resource: {reason}"
    )))
}
