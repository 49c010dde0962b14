use std::borrow::Cow;

use async_trait::async_trait;
use fenced_core::{
    Answer, BoxError, Fate, Fence, FencingSink, LockPath, Opened, Outcome, Request, SinkError,
    SinkId, SqlValue, Statement,
};
use sqlx::encode::{Encode, IsNull};
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo, Postgres};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool, Row as _, Type};

use super::blockers;
use super::commit::commit;
use super::own::claim_within;
use super::tx::SqlxTx;
use crate::PgSink;
use crate::bounds::answered;
use crate::open::check;
use crate::outcome::{FATE, Found};
use crate::refusal;

/// Parameters are sent as `bool`, `bigint`, `double precision`, `text` and `bytea`: cast those that
/// are compared with a column of another kind.
#[async_trait]
impl FencingSink for PgSink<PgPool> {
    type Write = Vec<Statement>;
    type Answer = Answer;

    async fn claim(&self, fence: &Fence) -> Result<(), SinkError> {
        let claimed = async {
            let mut connection = self.connection().await?;
            let claiming = claim_within(&mut connection, fence, &self.bounds);
            match answered(self.bounds.answer(), claiming).await {
                Ok(Err(error @ SinkError::Busy { .. })) => {
                    stopped_waiting(&mut connection).await?;
                    Err(error)
                }
                Ok(claimed) => claimed,
                Err(silent) => {
                    connection.close_on_drop();
                    Err(silent.into())
                }
            }
        };
        blockers::named(self, fence, claimed.await).await
    }

    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        write: Vec<Statement>,
    ) -> Result<Outcome<Answer>, SinkError> {
        match self.open(fence, Some(request)).await? {
            Opened::Replayed(answer) => Ok(Outcome::Replayed(answer)),
            Opened::Fresh(mut tx) => {
                let answer = Answer::of(&execute_all(&mut tx, &write).await?)?;
                commit(tx, &self.bounds, fence, request, answer).await
            }
        }
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<Answer>, SinkError> {
        request.digest()?;
        request.fence().map_or(Ok(()), check)?;
        let mut connection = self.connection().await?;
        let asking = found(&mut connection, request);
        match answered(self.bounds.answer(), asking).await {
            Ok(found) => found?.fate(request),
            Err(silent) => {
                connection.close_on_drop();
                Err(silent.into())
            }
        }
    }

    fn resource<'a>(&'a self, path: &'a LockPath) -> Cow<'a, str> {
        self.resource_of(path)
    }

    fn id(&self) -> Option<SinkId> {
        Some(self.same_as())
    }
}

/// An error is told before its statement has let go of its place in the queue for a lock, where it
/// would be taken for the one that holds it.
async fn stopped_waiting(connection: &mut PgConnection) -> Result<(), SinkError> {
    connection.ping().await.map_err(refusal::failed)
}

async fn found(connection: &mut PgConnection, request: &Request) -> Result<Found, SinkError> {
    let select = sqlx::query(FATE)
        .bind(request.id())
        .bind(request.fence().map(|fence| &fence.resource))
        .fetch_one(connection);
    let row = select.await.map_err(refusal::failed)?;
    let found = || -> Result<Found, sqlx::Error> {
        Ok(Found {
            digest: row.try_get(0)?,
            answer: row.try_get(1)?,
            exclusive: row.try_get(2)?,
            shared: row.try_get(3)?,
            floor: row.try_get(4)?,
        })
    };
    found().map_err(refusal::failed)
}

/// Executes the statements in order; the answer is how many rows each of them changed.
async fn execute_all(tx: &mut SqlxTx, statements: &[Statement]) -> Result<Vec<u64>, SinkError> {
    let mut changed = Vec::with_capacity(statements.len());
    for statement in statements {
        let (sql, parameters) = (statement.sql().to_owned(), statement.parameters());
        // `sqlx` keeps a statement by its text, with the types of the first values.
        let is_typed = !parameters.contains(&SqlValue::Null);
        let query = sqlx::query(AssertSqlSafe(sql)).persistent(is_typed);
        let query = parameters.iter().fold(query, bind);
        let done = query.execute(&mut **tx).await;
        changed.push(done.map_err(refusal::of_statement)?.rows_affected());
    }
    Ok(changed)
}

type Bound<'q> = Query<'q, Postgres, PgArguments>;

fn bind<'q>(query: Bound<'q>, value: &SqlValue) -> Bound<'q> {
    match value {
        SqlValue::Bool(bool) => query.bind(*bool),
        SqlValue::Integer(integer) => query.bind(*integer),
        SqlValue::Real(real) => query.bind(*real),
        SqlValue::Text(text) => query.bind(text.clone()),
        SqlValue::Bytes(bytes) => query.bind(bytes.clone()),
        _ => query.bind(Null),
    }
}

/// No value, of whatever type the statement makes of it.
struct Null;

impl Type<Postgres> for Null {
    fn type_info() -> PgTypeInfo {
        const UNKNOWN: Oid = Oid(705);
        PgTypeInfo::with_oid(UNKNOWN)
    }
}

impl Encode<'_, Postgres> for Null {
    fn encode_by_ref(&self, _: &mut PgArgumentBuffer) -> Result<IsNull, BoxError> {
        Ok(IsNull::Yes)
    }
}
