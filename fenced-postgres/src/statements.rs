use fenced_core::{SinkError, Statement};
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use crate::refusal::sink_error;
use crate::tx::PgTx;
use crate::value::Parameter;

/// Executes the statements in order; the answer is how many rows each of them changed.
pub(crate) async fn execute_all(
    tx: &PgTx,
    statements: &[Statement],
) -> Result<Vec<u64>, SinkError> {
    let mut changed = Vec::with_capacity(statements.len());
    for statement in statements {
        changed.push(execute(tx, statement).await.map_err(sink_error)?);
    }
    Ok(changed)
}

async fn execute(tx: &PgTx, statement: &Statement) -> Result<u64, Error> {
    let values: Vec<_> = statement.parameters().iter().map(Parameter).collect();
    let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
    let prepared = tx.prepare_cached(statement.sql()).await?;
    tx.execute(&prepared, &values).await
}
