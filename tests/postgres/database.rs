use std::str::FromStr;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use fenced::postgres::{PgSink, migrate};
use fenced::{Fence, FencingToken, Request, Statement};
use fenced_tests::Proxy;
use fenced_tests::shared::fresh_database;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls};

/// The resource, and the row of `stock` that stands for it.
pub(crate) const SKU: &str = "/locks/inventory/4711";

/// A database of one test, with the schema, and the table `stock` with a count of 100 at [`SKU`].
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) pool: Pool,
    pub(crate) sink: PgSink,
}

impl Database {
    pub(crate) async fn new() -> Self {
        let url = fresh_database().await;
        let pool = pool(&url, 8);
        let client = pool.get().await.expect("a connection");
        migrate(&client).await.expect("a migration");
        let table = "CREATE TABLE stock (sku text PRIMARY KEY, count bigint NOT NULL)";
        client.batch_execute(table).await.expect("a table");
        let row = "INSERT INTO stock VALUES ($1, 100)";
        client.execute(row, &[&SKU]).await.expect("a row");
        let sink = PgSink::new(pool.clone());
        Self { url, pool, sink }
    }

    /// A session of its own, beside the pool.
    pub(crate) async fn session(&self) -> Session {
        Session::open(&self.url).await
    }

    /// The same database over a network that can fail, with a single connection.
    pub(crate) fn behind_a_proxy(&self) -> (Proxy, PgSink) {
        let (proxy, url) = self.url_behind_a_proxy();
        (proxy, PgSink::new(pool(&url, 1)))
    }

    pub(crate) fn url_behind_a_proxy(&self) -> (Proxy, String) {
        let (server, name) = self.url.rsplit_once('/').expect("a URL");
        let address = server.rsplit_once('@').expect("a user").1;
        let proxy = Proxy::start(address).expect("a proxy");
        let (direct, through) = (
            format!("{address}/{name}"),
            format!("{}/{name}", proxy.address()),
        );
        let url = self.url.replace(&direct, &through);
        (proxy, url)
    }

    pub(crate) async fn count(&self) -> i64 {
        self.count_of(SKU).await
    }

    pub(crate) async fn count_of(&self, sku: &str) -> i64 {
        let client = self.pool.get().await.expect("a connection");
        let select = "SELECT coalesce((SELECT count FROM stock WHERE sku = $1), 0)";
        let row = client.query_one(select, &[&sku]).await;
        row.expect("a count").get(0)
    }

    /// How many transactions of this database are open, beside the one that asks.
    pub(crate) async fn open_transactions(&self) -> i64 {
        let client = self.pool.get().await.expect("a connection");
        let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
            AND xact_start IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
        client.query_one(count, &[]).await.expect("a count").get(0)
    }

    /// Waits until a session of this database waits for a lock.
    pub(crate) async fn wait_until_somebody_waits(&self) {
        let waiting = "SELECT EXISTS (SELECT FROM pg_stat_activity \
            WHERE datname = current_database() AND wait_event_type = 'Lock')";
        let client = self.pool.get().await.expect("a connection");
        while !client
            .query_one(waiting, &[])
            .await
            .expect("an answer")
            .get::<_, bool>(0)
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

pub(crate) fn pool(url: &str, size: usize) -> Pool {
    let config = Config::from_str(url).expect("a URL");
    let recycling_method = RecyclingMethod::Fast;
    let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method });
    Pool::builder(manager)
        .max_size(size)
        .build()
        .expect("a pool")
}

/// A plain connection.
pub(crate) struct Session {
    pub(crate) client: Client,
    _connection: JoinHandle<()>,
}

impl Session {
    pub(crate) async fn open(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls)
            .await
            .expect("a session");
        let connection = tokio::spawn(async move { drop(connection.await) });
        Self {
            client,
            _connection: connection,
        }
    }

    pub(crate) async fn run(&self, sql: &str) {
        let done = self.client.batch_execute(sql).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

pub(crate) fn fence(token: i64) -> Fence {
    Fence::new(SKU, self::token(token))
}

pub(crate) fn token(token: i64) -> FencingToken {
    FencingToken::try_from(token).expect("a token")
}

pub(crate) fn request(id: &str) -> Request {
    Request::new(id, &id)
}

pub(crate) fn add(sku: &str, amount: i64) -> Vec<Statement> {
    let add = "INSERT INTO stock AS s VALUES ($1, $2) \
        ON CONFLICT (sku) DO UPDATE SET count = s.count + EXCLUDED.count RETURNING count";
    vec![Statement::new(add).bind(sku).bind(amount)]
}

pub(crate) fn set(sku: &str, count: i64) -> Vec<Statement> {
    let set =
        "INSERT INTO stock VALUES ($1, $2) ON CONFLICT (sku) DO UPDATE SET count = EXCLUDED.count";
    vec![Statement::new(set).bind(sku).bind(count)]
}
