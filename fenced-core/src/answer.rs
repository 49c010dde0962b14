use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::SinkError;

/// What a sink answered to a write, in the form in which it is kept beside the request.
///
/// ```
/// use fenced_core::Answer;
///
/// let answer = Answer::of(&41)?;
/// assert_eq!(answer.as_json(), "41");
/// assert_eq!(answer.decode::<i32>()?, 41);
/// # Ok::<(), fenced_core::SinkError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer(String);

impl Answer {
    /// The stored form of `value`.
    ///
    /// # Errors
    /// [`SinkError::Backend`] if the value has no JSON form.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, SinkError> {
        serde_json::to_string(value)
            .map(Self)
            .map_err(SinkError::backend)
    }

    /// An answer that a resource kept.
    pub fn from_json(json: impl Into<String>) -> Self {
        Self(json.into())
    }

    /// The stored form.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The value.
    ///
    /// # Errors
    /// [`SinkError::Backend`] if what was kept is no `T`, as after a change of the answer's type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, SinkError> {
        serde_json::from_str(&self.0).map_err(SinkError::backend)
    }
}
