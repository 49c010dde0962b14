use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use deadpool_postgres::Object;
use tokio_postgres::{Client, Error, Statement};

use crate::pipeline::send;

/// An open transaction that holds the fence; it owns its connection of the pool.
///
/// It derefs to [`Client`], for statements; beginning, committing and rolling back are the
/// sink's. Prepare what runs often with [`prepare_cached`](Self::prepare_cached): a text costs a
/// second round trip.
///
/// # Cancel safety
/// Dropping it rolls back, before anybody else's statement on this connection.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct PgTx {
    /// Until it stays silent.
    connection: Option<Object>,
    answer_within: Duration,
    is_open: bool,
    savepoints: AtomicU32,
}

impl PgTx {
    /// The transaction is open from the moment BEGIN may have been sent.
    pub(crate) fn new(connection: Object, answer_within: Duration) -> Self {
        Self {
            connection: Some(connection),
            answer_within,
            is_open: true,
            savepoints: AtomicU32::new(0),
        }
    }

    /// A statement that is prepared once for each connection.
    ///
    /// # Errors
    /// What the server says of the statement.
    pub async fn prepare_cached(&self, sql: &str) -> Result<Statement, Error> {
        self.connection().prepare_cached(sql).await
    }

    /// Runs `body` so that its effect is undone if it fails or is dropped, and the transaction
    /// goes on. It adds no round trip, and cannot release the fence.
    ///
    /// # Errors
    /// Those of `body`.
    pub async fn savepoint<T, E, F>(&self, body: F) -> Result<T, E>
    where
        F: for<'t> AsyncFnOnce(&'t Self) -> Result<T, E>,
    {
        let savepoint = Savepoint::set(self);
        let done = body(self).await;
        if done.is_ok() {
            savepoint.keep();
        }
        done
    }

    /// Rolls back, unless it has ended: before whatever is sent next.
    pub(crate) fn roll_back(&mut self) {
        if self.is_open {
            self.is_open = false;
            if let Some(connection) = &self.connection {
                send(connection.batch_execute("ROLLBACK"));
            }
        }
    }

    /// How long an answer to a statement of ours may take.
    pub(crate) fn answer_within(&self) -> Duration {
        self.answer_within
    }

    /// Closes a connection that stays silent, which must not go back to the pool.
    pub(crate) fn give_up(mut self) {
        self.connection.take().map(Object::take);
    }

    fn connection(&self) -> &Object {
        let connection = self.connection.as_ref();
        connection.expect("a transaction whose server is silent is not used any more")
    }

    /// COMMIT was answered, one way or the other.
    pub(crate) fn ended(&mut self) {
        self.is_open = false;
    }
}

impl Deref for PgTx {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.connection()
    }
}

impl Drop for PgTx {
    fn drop(&mut self) {
        self.roll_back();
    }
}

impl fmt::Debug for PgTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgTx")
            .field("is_open", &self.is_open)
            .finish_non_exhaustive()
    }
}

/// Undoes what came after it when it is dropped.
struct Savepoint<'t> {
    tx: &'t PgTx,
    name: String,
    is_kept: bool,
}

impl<'t> Savepoint<'t> {
    fn set(tx: &'t PgTx) -> Self {
        let number = tx.savepoints.fetch_add(1, Ordering::Relaxed);
        let name = format!("fenced_{number}");
        send(tx.batch_execute(&format!("SAVEPOINT {name}")));
        Self {
            tx,
            name,
            is_kept: false,
        }
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        let name = &self.name;
        let undo = if self.is_kept {
            String::new()
        } else {
            format!("ROLLBACK TO {name}; ")
        };
        send(self.tx.batch_execute(&format!("{undo}RELEASE {name}")));
    }
}
