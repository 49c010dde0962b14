use std::borrow::Cow;
use std::fmt::Write as _;

use crate::path::{LockPath, PathError, is_refused, names_contender};

/// A value that can fill a hole of a lock path.
///
/// Its text must be the same for equal values and different for others. It needs no escaping:
/// the path is built so that two texts never give one path.
///
/// ```
/// use std::borrow::Cow;
/// use fenced_core::LockSegment;
///
/// struct Sku(u32);
///
/// impl LockSegment for Sku {
///     fn text(&self) -> Cow<'_, str> { self.0.to_string().into() }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a lock path",
    label = "needs one canonical text for each value",
    note = "strings, integers and `char` can; for a type of your own derive or implement `LockSegment`",
    note = "an `Option` must be resolved first, since all callers without a value would share one lock; floats and `()` have no canonical text"
)]
pub trait LockSegment {
    /// The canonical text.
    fn text(&self) -> Cow<'_, str>;
}

impl LockSegment for str {
    fn text(&self) -> Cow<'_, str> {
        self.into()
    }
}

impl LockSegment for String {
    fn text(&self) -> Cow<'_, str> {
        self.as_str().into()
    }
}

impl LockSegment for char {
    fn text(&self) -> Cow<'_, str> {
        self.to_string().into()
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl LockSegment for $integer {
            fn text(&self) -> Cow<'_, str> {
                self.to_string().into()
            }
        }
    )*};
}
integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

#[cfg(feature = "uuid")]
impl LockSegment for uuid::Uuid {
    fn text(&self) -> Cow<'_, str> {
        self.to_string().into()
    }
}

macro_rules! pointers {
    ($($pointer:ty)*) => {$(
        impl<T: LockSegment + ?Sized> LockSegment for $pointer {
            fn text(&self) -> Cow<'_, str> {
                (**self).text()
            }
        }
    )*};
}
pointers!(&T &mut T Box<T> std::rc::Rc<T> std::sync::Arc<T>);

impl<T: LockSegment + ToOwned + ?Sized> LockSegment for Cow<'_, T> {
    fn text(&self) -> Cow<'_, str> {
        (**self).text()
    }
}

/// Fills the holes of a template, one for each segment.
#[derive(Debug)]
pub struct PathBuilder {
    pattern: &'static str,
    path: String,
    /// Where the last hole's last character starts, if the hole is in the current segment.
    hole: Option<usize>,
    error: Option<PathError>,
}

impl PathBuilder {
    /// Starts a path of the template `pattern`.
    #[must_use]
    pub fn new(pattern: &'static str) -> Self {
        Self {
            pattern,
            path: String::with_capacity(pattern.len() + 16),
            hole: None,
            error: None,
        }
    }

    /// Adds fixed text.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        let mut segments = text.split('/');
        self.path.push_str(segments.next().unwrap_or_default());
        for segment in segments {
            self.end_segment();
            self.path.push('/');
            self.path.push_str(segment);
        }
        self
    }

    /// Fills the hole called `name` with the text of a [`LockSegment`].
    #[must_use]
    pub fn hole(mut self, name: &str, text: impl AsRef<str>) -> Self {
        let value = text.as_ref();
        let Some(last) = value.chars().next_back() else {
            self.error.get_or_insert_with(|| PathError::EmptyHole {
                hole: name.to_owned(),
                pattern: self.pattern.to_owned(),
            });
            return self;
        };
        let start = value.len() - last.len_utf8();
        value[..start]
            .chars()
            .for_each(|c| push_escaped(&mut self.path, c));
        self.hole = Some(self.path.len());
        push_escaped(&mut self.path, last);
        self
    }

    /// The path.
    ///
    /// # Errors
    /// A hole was empty, or the whole breaks a rule of [`LockPath`].
    pub fn build(mut self) -> Result<LockPath, PathError> {
        self.end_segment();
        match self.error {
            Some(error) => Err(error),
            None => LockPath::checked(self.path, Some(self.pattern)),
        }
    }

    /// A segment that means something else as a whole gets the hole's last character escaped.
    fn end_segment(&mut self) {
        let Some(hole) = self.hole.take() else {
            return;
        };
        let start = self.path.rfind('/').map_or(0, |slash| slash + 1);
        let segment = &self.path[start..];
        if segment == ".." {
            self.path.replace_range(start.., "%2E%2E");
        } else if segment == "." || names_contender(segment) {
            let escaped = format!("%{:02X}", self.path.as_bytes()[hole]);
            self.path.replace_range(hole..=hole, &escaped);
        }
    }
}

fn push_escaped(path: &mut String, c: char) {
    if !is_refused(c) && c != '/' && c != '%' {
        path.push(c);
        return;
    }
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        let _ = write!(path, "%{byte:02X}");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn fill(before: &'static str, value: &str, after: &'static str) -> Result<LockPath, PathError> {
        PathBuilder::new("/locks/<x>")
            .text(before)
            .hole("x", value)
            .text(after)
            .build()
    }

    #[test]
    fn escapes_what_would_mean_something_else() {
        for (value, expected) in [
            ("4711", "/l/4711"),
            ("a/b%", "/l/a%2Fb%25"),
            (".", "/l/%2E"),
            ("..", "/l/%2E%2E"),
            ("...", "/l/..."),
            ("🦀", "/l/%F0%9F%A6%80"),
            ("x\n", "/l/x%0A"),
            ("a-lock-0000000001", "/l/a-lock-000000000%31"),
            ("x__READ__-123456789", "/l/x__READ__-12345678%39"),
        ] {
            assert_eq!(fill("/l/", value, "").unwrap().as_str(), expected);
        }
        assert_eq!(
            fill("/l/lock-", "1234567890", "/b").unwrap().as_str(),
            "/l/lock-123456789%30/b"
        );
        assert_eq!(
            fill("/l/lock-12", "34", "567890").unwrap().as_str(),
            "/l/lock-123%34567890"
        );
        assert_eq!(fill("/l/.", ".", "").unwrap().as_str(), "/l/%2E%2E");
    }

    #[test]
    fn an_empty_hole_is_an_error_that_names_it() {
        let error = fill("/l/", "", "").unwrap_err();
        assert!(error.to_string().contains("`<x>`"), "{error}");
    }

    #[test]
    fn different_values_never_give_one_path() {
        let alphabet = [
            "a",
            "/",
            "%",
            "2",
            "E",
            "F",
            ".",
            "\n",
            "\u{fff0}",
            "🦀",
            "lock-000000000",
            "1",
        ];
        let mut values = vec![String::new()];
        for _ in 0..4 {
            let longer = values
                .iter()
                .flat_map(|v| alphabet.map(|a| format!("{v}{a}")))
                .collect::<Vec<_>>();
            values.extend(longer);
        }
        values.sort_unstable();
        values.dedup();
        for (before, after) in [("/l/", ""), ("/l/lock-", "/x"), ("/l/.", ""), ("/l/", ".")] {
            let mut seen = HashMap::new();
            for value in values.iter().filter(|v| !v.is_empty()) {
                let path = fill(before, value, after).unwrap();
                if let Some(other) = seen.insert(path.clone(), value) {
                    panic!("{value:?} and {other:?} both give {path}");
                }
            }
        }
    }
}
