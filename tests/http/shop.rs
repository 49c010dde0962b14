//! The same service, with its counters in PostgreSQL: each request is a transaction.

use std::str::FromStr;

use async_trait::async_trait;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use fenced::http::axum::extract::Path;
use fenced::http::axum::http::StatusCode;
use fenced::http::axum::routing::post;
use fenced::http::axum::{Json, Router};
use fenced::http::{FenceServer, Held, HttpSink, HttpWrite};
use fenced::postgres::{PassedTx, PgSink, migrate};
use fenced::testing::SinkUnderTest;
use fenced_tests::shared::fresh_database;
use serde_json::Value;
use tokio_postgres::{Config, NoTls};

use crate::counters::{self, Service, by_name};

pub(crate) struct Shop {
    pub(crate) service: Service,
    pub(crate) pool: Pool,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        let pool = database().await;
        let fence = FenceServer::new(PgSink::new(pool.clone()));
        Self::serve(pool, &fence).await
    }

    pub(crate) async fn serve(pool: Pool, fence: &FenceServer<PgSink>) -> Self {
        let router = Router::new()
            .route(
                "/counters/{name}",
                post(count).layer(fence.layer(by_name())),
            )
            .nest_service("/.fence", fence.endpoint());
        Self {
            service: Service::start(router).await,
            pool,
        }
    }

    pub(crate) async fn count(&self, name: &str) -> i64 {
        let client = self.pool.get().await.expect("a connection");
        let select = "SELECT coalesce((SELECT count FROM counter WHERE name = $1), 0)";
        let row = client.query_one(select, &[&name]).await;
        row.expect("a count").get(0)
    }
}

/// A database of one test, with the fence's schema and a table of counters.
pub(crate) async fn database() -> Pool {
    let config = Config::from_str(&fresh_database().await).expect("a URL");
    let recycling_method = RecyclingMethod::Fast;
    let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method });
    let pool = Pool::builder(manager).max_size(8).build().expect("a pool");
    let client = pool.get().await.expect("a connection");
    migrate(&client).await.expect("a migration");
    let table = "CREATE TABLE counter (name text PRIMARY KEY, count bigint NOT NULL)";
    client.batch_execute(table).await.expect("a table");
    drop(client);
    pool
}

/// An order for 13 changes the counter, and is refused all the same; so is undone.
async fn count(
    tx: Held<PassedTx>,
    Path(name): Path<String>,
    Json(order): Json<Value>,
) -> Result<Json<i64>, (StatusCode, &'static str)> {
    let (change, number) = match (order["add"].as_i64(), order["set"].as_i64()) {
        (Some(more), _) => ("counter.count + EXCLUDED.count", more),
        (_, Some(value)) => ("EXCLUDED.count", value),
        _ => return Err((StatusCode::BAD_REQUEST, "no order")),
    };
    let sql = format!(
        "INSERT INTO counter VALUES ($1, $2) \
         ON CONFLICT (name) DO UPDATE SET count = {change} RETURNING count"
    );
    let sql = tx.prepare_cached(&sql).await.expect("a statement");
    let row = tx.query_one(&sql, &[&name, &number]).await;
    let count = row.expect("a count").get(0);
    if number == 13 {
        return Err((StatusCode::CONFLICT, "not 13"));
    }
    Ok(Json(count))
}

#[async_trait]
impl SinkUnderTest for Shop {
    type Sink = HttpSink;

    fn sink(&self) -> &HttpSink {
        &self.service.sink
    }

    fn add(&self, resource: &str, amount: i64) -> HttpWrite {
        counters::add(resource, amount)
    }

    fn set(&self, resource: &str, value: i64) -> HttpWrite {
        counters::set(resource, value)
    }

    async fn value(&self, resource: &str) -> i64 {
        self.count(resource).await
    }
}

fenced_core::sink_conformance!(Shop::open());
