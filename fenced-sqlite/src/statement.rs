use fenced_core::{SinkError, SqlValue, Statement};
use rusqlite::types::{Null, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection};

/// Executes the statements in order; the answer is how many rows each of them changed.
pub(crate) fn execute_all(
    database: &Connection,
    statements: &[Statement],
) -> Result<Vec<u64>, SinkError> {
    statements
        .iter()
        .map(|statement| execute(database, statement))
        .collect()
}

fn execute(database: &Connection, statement: &Statement) -> Result<u64, SinkError> {
    let mut prepared = database
        .prepare_cached(statement.sql())
        .map_err(SinkError::backend)?;
    bind(&mut prepared, statement.parameters())?;
    let mut rows = prepared.raw_query();
    while rows.next().map_err(SinkError::backend)?.is_some() {}
    drop(rows);
    Ok(if prepared.readonly() {
        0
    } else {
        database.changes()
    })
}

fn bind(prepared: &mut CachedStatement<'_>, values: &[SqlValue]) -> Result<(), SinkError> {
    let (expected, given) = (prepared.parameter_count(), values.len());
    if expected != given {
        let message = format!("the statement has {expected} parameters, and {given} are bound");
        return Err(SinkError::backend(message));
    }
    for (number, value) in (1..).zip(values) {
        let name = format!("${number}");
        let index = prepared
            .parameter_index(&name)
            .map_err(SinkError::backend)?;
        let Some(index) = index else {
            let message = format!("the statement has no parameter `{name}`: number them from $1");
            return Err(SinkError::backend(message));
        };
        prepared
            .raw_bind_parameter(index, Parameter(value))
            .map_err(SinkError::backend)?;
    }
    Ok(())
}

struct Parameter<'a>(&'a SqlValue);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            SqlValue::Null => Null.into(),
            SqlValue::Bool(value) => (*value).into(),
            SqlValue::Integer(value) => (*value).into(),
            SqlValue::Real(value) => (*value).into(),
            SqlValue::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
            SqlValue::Bytes(value) => ToSqlOutput::Borrowed(ValueRef::Blob(value)),
            other => {
                let message = format!("SQLite cannot store {other:?}");
                return Err(rusqlite::Error::ToSqlConversionFailure(message.into()));
            }
        })
    }
}
