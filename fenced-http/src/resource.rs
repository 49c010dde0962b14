//! The names of resources, as they travel.

use std::fmt::Write as _;

/// The longest name of a resource, in bytes.
pub(crate) const MAX_BYTES: usize = 1_024;

/// Why a text cannot name a resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot name a resource: {reason}")]
pub(crate) struct InvalidResource {
    name: String,
    reason: &'static str,
}

pub(crate) fn check(name: &str) -> Result<(), InvalidResource> {
    let reason = match name {
        "" => "it is empty",
        "." | ".." => "it has another meaning in a URL",
        _ if name.len() > MAX_BYTES => "it is longer than 1024 bytes",
        _ if name.chars().any(char::is_control) => "it holds a control character",
        _ => return Ok(()),
    };
    let name = name.chars().take(80).collect();
    Err(InvalidResource { name, reason })
}

/// As one segment of a URL's path.
pub(crate) fn encode(name: &str) -> String {
    let mut segment = String::with_capacity(name.len() + 16);
    for b in name.bytes() {
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~') {
            segment.push(char::from(b));
        } else {
            let _ = write!(segment, "%{b:02X}");
        }
    }
    segment
}

/// What a segment of a URL's path says; none if it is malformed.
pub(crate) fn decode(segment: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(segment.len());
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? << 4 | digit()?).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(all(test, feature = "client", feature = "server"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_as_it_was_written() {
        for name in [
            "/locks/a",
            "/%61",
            "/ä 🦀",
            "/'; DROP TABLE t; --",
            "a/../b",
        ] {
            assert_eq!(check(name), Ok(()));
            assert_eq!(decode(&encode(name)).as_deref(), Some(name));
        }
        for bad in ["%", "%4", "%zz", "%+4", "%ff"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
        for bad in ["", "..", "a\nb", &"x".repeat(1_025)] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}
