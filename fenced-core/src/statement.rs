use std::borrow::Cow;

/// One SQL statement with its parameters, as the SQL sinks take them for a write.
///
/// Parameters are written `$1`, `$2` and so on, in every dialect.
///
/// ```
/// use fenced_core::Statement;
///
/// let sell = Statement::new("UPDATE stock SET count = count - $1 WHERE sku = $2")
///     .bind(2)
///     .bind("sku-4711");
/// assert_eq!(sell.parameters().len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    sql: Cow<'static, str>,
    parameters: Vec<SqlValue>,
}

impl Statement {
    /// A statement. Values that are not the program's own belong into parameters.
    pub fn new(sql: impl Into<Cow<'static, str>>) -> Self {
        Self {
            sql: sql.into(),
            parameters: Vec::new(),
        }
    }

    /// Adds the next parameter.
    #[must_use]
    pub fn bind(mut self, value: impl Into<SqlValue>) -> Self {
        self.parameters.push(value.into());
        self
    }

    /// The text.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The parameters in order.
    #[must_use]
    pub fn parameters(&self) -> &[SqlValue] {
        &self.parameters
    }
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SqlValue {
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

macro_rules! from {
    ($($source:ty => $kind:ident),* $(,)?) => {$(
        impl From<$source> for SqlValue {
            fn from(value: $source) -> Self {
                Self::$kind(value.into())
            }
        }
    )*};
}
from! {
    bool => Bool,
    i8 => Integer, i16 => Integer, i32 => Integer, i64 => Integer, u8 => Integer, u16 => Integer, u32 => Integer,
    f32 => Real, f64 => Real,
    &str => Text, String => Text, Cow<'_, str> => Text,
    &[u8] => Bytes, Vec<u8> => Bytes,
}

impl<T: Into<SqlValue>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
