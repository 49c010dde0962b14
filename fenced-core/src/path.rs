use std::borrow::Borrow;
use std::convert::Infallible;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::segment::PathBuilder;

/// The name of one lock, such as `/locks/inventory/4711`.
///
/// It is absolute, at most [`LockPath::MAX_BYTES`] long, and holds only what every lock service
/// can store. A path that `#[fenced]` builds also knows its [pattern](LockPath::pattern).
///
/// ```
/// use fenced_core::LockPath;
///
/// let path = LockPath::new("/locks/inventory/4711")?;
/// assert_eq!(path.as_str(), "/locks/inventory/4711");
/// assert!(LockPath::new("locks/inventory").is_err());
/// assert!(LockPath::new("/locks/../secrets").is_err());
/// # Ok::<(), fenced_core::PathError>(())
/// ```
#[derive(Clone)]
pub struct LockPath {
    text: Arc<str>,
    pattern: Option<&'static str>,
}

/// Why a text cannot name a lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path does not start with `/`.
    #[error("the lock path {0:?} is relative: start it with `/`")]
    Relative(String),
    /// The path is `/` alone, ends in `/`, or has two `/` in a row.
    #[error("the lock path {0:?} has an empty segment: write something between and after its `/`")]
    EmptySegment(String),
    /// A segment is `.` or `..`.
    #[error("the lock path {0:?} has a segment `.` or `..`: name the segment in full")]
    DotSegment(String),
    /// The path holds a character that ZooKeeper refuses.
    #[error(
        "the lock path {path:?} holds {character:?}, which ZooKeeper refuses in a path: leave it out, or pass it through a hole, which escapes it"
    )]
    Character {
        /// The path.
        path: String,
        /// Its first refused character.
        character: char,
    },
    /// A segment ends like the node of a contender, and would be taken for one.
    #[error(
        "the lock path {0:?} has a segment that ends like a contender's node (`lock-0000000001`): rename it"
    )]
    ContenderName(String),
    /// The path is longer than [`LockPath::MAX_BYTES`].
    #[error("the lock path `{start}…` has {bytes} bytes, more than the {max} that are allowed: use a shorter key, such as a digest of it", max = LockPath::MAX_BYTES)]
    TooLong {
        /// How the path starts.
        start: String,
        /// How long it is.
        bytes: usize,
    },
    /// A hole was filled with an empty value, which would make all such callers share one lock.
    #[error(
        "the hole `<{hole}>` of the lock `{pattern}` is empty: give it a value, since an empty one would be a lock that all callers share"
    )]
    EmptyHole {
        /// The name of the hole.
        hole: String,
        /// The template.
        pattern: String,
    },
}

impl LockPath {
    /// The longest path, in bytes.
    pub const MAX_BYTES: usize = 1_000;

    /// Checks a path that is written out in full.
    ///
    /// # Errors
    /// A [`PathError`] that says which rule the path breaks.
    pub fn new(path: impl Into<String>) -> Result<Self, PathError> {
        Self::checked(path.into(), None)
    }

    pub(crate) fn checked(path: String, pattern: Option<&'static str>) -> Result<Self, PathError> {
        check(&path)?;
        Ok(Self {
            text: path.into(),
            pattern,
        })
    }

    /// Fills the holes of a template at run time, escaped as `#[fenced]` does it: for a server that
    /// names the same lock. A hole without a value counts as empty.
    ///
    /// ```
    /// use fenced_core::LockPath;
    ///
    /// let path = LockPath::fill("/locks/<sku>", |hole| (hole == "sku").then_some("a/b"))?;
    /// assert_eq!(path.as_str(), "/locks/a%2Fb");
    /// # Ok::<(), fenced_core::PathError>(())
    /// ```
    ///
    /// # Errors
    /// A hole is empty, or the whole breaks a rule of [`LockPath`].
    pub fn fill<V: AsRef<str>>(
        template: &'static str,
        mut value: impl FnMut(&str) -> Option<V>,
    ) -> Result<Self, PathError> {
        let mut parts = template.split('<');
        let mut path = PathBuilder::new(template).text(parts.next().unwrap_or_default());
        for part in parts {
            let (hole, text) = part.split_once('>').unwrap_or((part, ""));
            path = match value(hole) {
                Some(value) => path.hole(hole, value),
                None => path.hole(hole, ""),
            }
            .text(text);
        }
        path.build()
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The template the path was made from, as `/locks/inventory/<sku>`: a label of few values.
    #[must_use]
    pub fn pattern(&self) -> Option<&'static str> {
        self.pattern
    }
}

fn check(path: &str) -> Result<(), PathError> {
    if path.len() > LockPath::MAX_BYTES {
        return Err(PathError::TooLong {
            start: path.chars().take(40).collect(),
            bytes: path.len(),
        });
    }
    let Some(rest) = path.strip_prefix('/') else {
        return Err(PathError::Relative(path.to_owned()));
    };
    if let Some(character) = path.chars().find(|c| is_refused(*c)) {
        let path = path.to_owned();
        return Err(PathError::Character { path, character });
    }
    for segment in rest.split('/') {
        match segment {
            "" => return Err(PathError::EmptySegment(path.to_owned())),
            "." | ".." => return Err(PathError::DotSegment(path.to_owned())),
            _ if names_contender(segment) => {
                return Err(PathError::ContenderName(path.to_owned()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What ZooKeeper's path validation refuses (`PathUtils`, which sees UTF-16: hence all above
/// `U+FFFF`).
pub(crate) fn is_refused(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// Whether a lock recipe of ZooKeeper (ours, Curator's, Kazoo's) would take a node of this name
/// for a contender.
pub(crate) fn names_contender(segment: &str) -> bool {
    const KINDS: [&str; 6] = [
        "lock-",
        "latch-",
        "__lock__",
        "__rlock__",
        "__READ__",
        "__WRIT__",
    ];
    let bare = segment.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = segment.len() - bare.len();
    let ends_in = |bare: &str| KINDS.iter().any(|kind| bare.ends_with(kind));
    let negative = bare.strip_suffix('-').is_some_and(ends_in);
    (digits == 10 && ends_in(bare)) || (matches!(digits, 9 | 10) && negative)
}

impl AsRef<str> for LockPath {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl Borrow<str> for LockPath {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl PartialEq for LockPath {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for LockPath {}

impl Hash for LockPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for LockPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl fmt::Debug for LockPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl TryFrom<&str> for LockPath {
    type Error = PathError;

    fn try_from(path: &str) -> Result<Self, PathError> {
        Self::new(path)
    }
}

impl TryFrom<&String> for LockPath {
    type Error = PathError;

    fn try_from(path: &String) -> Result<Self, PathError> {
        Self::new(path.as_str())
    }
}

impl TryFrom<String> for LockPath {
    type Error = PathError;

    fn try_from(path: String) -> Result<Self, PathError> {
        Self::new(path)
    }
}

impl From<&LockPath> for LockPath {
    fn from(path: &LockPath) -> Self {
        path.clone()
    }
}

impl From<Infallible> for PathError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_every_kind_becomes_a_path() {
        let text = String::from("/locks/a");
        let path = LockPath::new("/locks/a");
        assert_eq!(LockPath::try_from(&text), path);
        assert_eq!(LockPath::try_from(text.as_str()), path);
        assert_eq!(LockPath::try_from(text), path);
    }

    #[test]
    fn refuses_what_no_service_can_store() {
        let long = format!("/{}", "a".repeat(1_000));
        for bad in [
            "",
            "locks",
            "/",
            "//",
            "/a/",
            "/a//b",
            "/.",
            "/a/..",
            "/a/\n",
            "/a/\u{7f}",
            "/a/\u{e000}",
            "/a/\u{fff0}",
            "/a/🦀",
            "/a/lock-0000000001",
            "/a/x-latch--123456789",
            "/a/_c_1__WRIT__0000000001/b",
            &long,
        ] {
            assert!(LockPath::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_template_is_filled_as_by_the_attribute() {
        let one = |value: &'static str| LockPath::fill("/locks/<a>/x", move |_| Some(value));
        assert_eq!(one("..").unwrap().as_str(), "/locks/%2E%2E/x");
        assert_eq!(one("ä%/").unwrap().as_str(), "/locks/ä%25%2F/x");
        let empty = [one(""), LockPath::fill("/locks/<a>", |_| None::<&str>)];
        for empty in empty {
            assert!(matches!(empty, Err(PathError::EmptyHole { .. })));
        }
    }

    #[test]
    fn accepts_what_is_only_close_to_bad() {
        let longest = format!("/{}", "a".repeat(999));
        for good in [
            "/a",
            "/a/.b",
            "/a/...",
            "/ä/%2F",
            "/lock-1",
            "/lock-00000000012",
            &longest,
        ] {
            assert_eq!(LockPath::new(good).unwrap().as_str(), good);
        }
    }
}
