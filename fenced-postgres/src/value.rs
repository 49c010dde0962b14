use std::error::Error;
use std::fmt::Write as _;

use bytes::BytesMut;
use fenced_core::SqlValue;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

/// A parameter, sent in the text form that the server reads by the type it inferred, so that it
/// checks the range and refuses what does not fit.
#[derive(Debug)]
pub(crate) struct Parameter<'a>(pub(crate) &'a SqlValue);

impl ToSql for Parameter<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.0 {
            SqlValue::Null => return Ok(IsNull::Yes),
            SqlValue::Bool(bool) => write!(out, "{bool}")?,
            SqlValue::Integer(integer) => write!(out, "{integer}")?,
            SqlValue::Real(real) => write!(out, "{real}")?,
            SqlValue::Text(text) => out.write_str(text)?,
            SqlValue::Bytes(bytes) if *kind == Type::BYTEA => out.extend_from_slice(bytes),
            _ => {
                return Err(format!("bytes are no parameter of type {kind}, only of bytea").into());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        match self.0 {
            SqlValue::Bytes(_) => Format::Binary,
            _ => Format::Text,
        }
    }

    to_sql_checked!();
}
