use fenced_core::{Answer, SinkError, Statement};
use serde_json::{Map, Value};
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Column, Error, Row};

use crate::refusal;
use crate::tx::PgTx;
use crate::value::Parameter;

/// Runs the statements in order; the last one makes the answer.
pub(crate) async fn run(tx: &PgTx, statements: &[Statement]) -> Result<Answer, SinkError> {
    let mut answer = Value::Null;
    for statement in statements {
        answer = run_one(tx, statement).await?;
    }
    Answer::of(&answer)
}

async fn run_one(tx: &PgTx, statement: &Statement) -> Result<Value, SinkError> {
    let parameters: Vec<_> = statement.parameters().iter().map(Parameter).collect();
    let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|one| one as _).collect();
    let prepared = tx.prepare_cached(statement.sql()).await;
    let prepared = prepared.map_err(refusal::sink_error)?;
    if prepared.columns().is_empty() {
        let changed = tx.execute(&prepared, &parameters).await;
        return Ok(changed.map_err(refusal::sink_error)?.into());
    }
    let rows = tx.query(&prepared, &parameters).await;
    let rows = rows.map_err(refusal::sink_error)?;
    rows.iter().map(object).collect()
}

fn object(row: &Row) -> Result<Value, SinkError> {
    let mut members = Map::new();
    for (index, column) in row.columns().iter().enumerate() {
        members.insert(column.name().to_owned(), member(row, index, column)?);
    }
    Ok(Value::Object(members))
}

fn member(row: &Row, index: usize, column: &Column) -> Result<Value, SinkError> {
    let value = match *column.type_() {
        Type::BOOL => get::<bool>(row, index),
        Type::INT2 => get::<i16>(row, index),
        Type::INT4 => get::<i32>(row, index),
        Type::INT8 => get::<i64>(row, index),
        Type::FLOAT4 => get::<f32>(row, index),
        Type::FLOAT8 => get::<f64>(row, index),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => get::<String>(row, index),
        ref other => {
            let name = column.name();
            return Err(refusal::backend(format!(
                "the column `{name}` has the type {other}, which has no place in an answer: cast it to text"
            )));
        }
    };
    value.map_err(refusal::backend)
}

fn get<'a, T>(row: &'a Row, index: usize) -> Result<Value, Error>
where
    T: FromSql<'a> + Into<Value>,
{
    let value: Option<T> = row.try_get(index)?;
    Ok(value.map_or(Value::Null, Into::into))
}
