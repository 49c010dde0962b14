use std::fmt;
use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgTransactionManager, Postgres};
use sqlx::{AssertSqlSafe, Error, PgConnection, SqlSafeStr, raw_sql};
use sqlx_core::transaction::TransactionManager;

/// An open transaction that holds the fence; it owns its connection of the pool.
///
/// It derefs to [`PgConnection`], for statements: `.execute(&mut *tx)`, or `&mut **tx` where the
/// transaction has a request. What [`begin`](sqlx::Connection::begin) begins on it is a savepoint,
/// which cannot release the fence.
///
/// # Cancel safety
/// Dropping it rolls back, before anybody else's statement on this connection.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct SqlxTx {
    connection: PoolConnection<Postgres>,
    /// Whether `sqlx` and the server agree on what is open: not while BEGIN or COMMIT is under
    /// way, and never again if the answer was not awaited.
    is_settled: bool,
}

impl SqlxTx {
    pub(super) fn new(connection: PoolConnection<Postgres>) -> Self {
        Self {
            connection,
            is_settled: true,
        }
    }

    /// Runs `sql`, which starts with BEGIN.
    pub(super) async fn begin(&mut self, sql: String) -> Result<(), Error> {
        self.is_settled = false;
        let sql = AssertSqlSafe(sql).into_sql_str();
        let begun = PgTransactionManager::begin(&mut self.connection, Some(sql)).await;
        match &begun {
            Ok(()) => self.is_settled = true,
            // `sqlx` does not know that a transaction was begun before it failed.
            Err(Error::Database(_)) => {
                raw_sql("ROLLBACK").execute(&mut *self.connection).await?;
                self.is_settled = true;
            }
            Err(_) => {}
        }
        begun
    }

    /// Runs `last` and COMMIT, in one round trip.
    ///
    /// `sqlx` goes on to believe in an open transaction, and rolls it back: so there is one.
    pub(super) async fn commit_after(&mut self, last: &str) -> Result<(), Error> {
        self.is_settled = false;
        let sql = AssertSqlSafe(format!("{last}; COMMIT; BEGIN"));
        let committed = raw_sql(sql).execute(&mut *self.connection).await;
        self.is_settled = matches!(committed, Ok(_) | Err(Error::Database(_)));
        committed.map(|_| ())
    }

    pub(super) async fn roll_back(&mut self) -> Result<(), Error> {
        PgTransactionManager::rollback(&mut self.connection).await
    }
}

impl Drop for SqlxTx {
    fn drop(&mut self) {
        if self.is_settled {
            PgTransactionManager::start_rollback(&mut self.connection);
        } else {
            self.connection.close_on_drop();
        }
    }
}

impl Deref for SqlxTx {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for SqlxTx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl fmt::Debug for SqlxTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlxTx")
            .field("is_settled", &self.is_settled)
            .finish_non_exhaustive()
    }
}
