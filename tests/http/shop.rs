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

mod transactions {
    use fenced::http::HttpRefusal;
    use fenced::{Fate, Fence, FencingSink, Request, SinkError};

    use super::Shop;
    use crate::counters::{add, token};

    const SKU: &str = "/sku";

    fn fence(number: i64) -> Fence {
        Fence::new(SKU, token(number))
    }

    fn sent(id: &str, number: i64) -> Request {
        Request::new(id, &id).sent_under(fence(number))
    }

    #[tokio::test]
    async fn what_a_handler_refuses_is_undone() {
        let shop = Shop::open().await;
        let sink = &shop.service.sink;
        let sent = sent("r1", 33);
        let refused = sink.write(&fence(33), &sent, add(SKU, 13)).await;
        let Err(SinkError::Backend(cause)) = refused else {
            panic!("{refused:?}");
        };
        let refusal: &HttpRefusal = cause.downcast_ref().expect("a refusal");
        assert_eq!(
            (refusal.status.as_u16(), &refusal.body[..]),
            (409, &b"not 13"[..])
        );
        assert_eq!(shop.count(SKU).await, 0);
        let again = sink.write(&fence(33), &sent, add(SKU, 12)).await;
        assert!(!again.expect("an answer").is_replayed());
        assert_eq!(shop.count(SKU).await, 12);
    }

    /// COMMIT waits until the test says so.
    async fn slow_commits(shop: &Shop) -> deadpool_postgres::Object {
        let session = shop.pool.get().await.expect("a connection");
        let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$; \
             CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON counter DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION slow(); SELECT pg_advisory_lock(1)";
        session.batch_execute(slow).await.expect("a slow table");
        session
    }

    async fn somebody_waits(session: &deadpool_postgres::Object) {
        let waiting = "SELECT EXISTS (SELECT FROM pg_stat_activity \
            WHERE datname = current_database() AND wait_event_type = 'Lock')";
        while !session
            .query_one(waiting, &[])
            .await
            .expect("an answer")
            .get::<_, bool>(0)
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_client_that_goes_during_the_commit_finds_its_answer() {
        let shop = Shop::open().await;
        let session = slow_commits(&shop).await;
        let (sink, sent, older) = (&shop.service.sink, sent("r1", 33), fence(33));
        tokio::select! {
            done = sink.write(&older, &sent, add(SKU, 1)) => panic!("{done:?}"),
            () = somebody_waits(&session) => {}
        }
        let unlock = "SELECT pg_advisory_unlock(1)";
        session.batch_execute(unlock).await.expect("an unlock");
        while let Err(error) = sink.claim(&fence(34)).await {
            assert!(error.is_retryable(), "{error}");
        }
        let fate = sink.outcome(&sent).await.expect("a fate");
        assert!(
            matches!(&fate, Fate::Applied(answer) if answer.body == "1"),
            "{fate:?}"
        );
        assert_eq!(shop.count(SKU).await, 1);
    }

    #[tokio::test]
    async fn a_connection_lost_in_commit_is_ambiguous_to_the_client_too() {
        let shop = Shop::open().await;
        let session = slow_commits(&shop).await;
        let (sink, sent, older) = (&shop.service.sink, sent("r1", 33), fence(33));
        let killing = async {
            somebody_waits(&session).await;
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
            session.batch_execute(kill).await.expect("a kill");
        };
        let (written, ()) = tokio::join!(sink.write(&older, &sent, add(SKU, 1)), killing);
        assert!(
            matches!(&written, Err(SinkError::Ambiguous { request: Some(id) }) if id == "r1"),
            "{written:?}"
        );
        while let Err(error) = sink.claim(&fence(34)).await {
            assert!(error.is_retryable(), "{error}");
        }
        let fate = sink.outcome(&sent).await.expect("a fate");
        assert_eq!(fate, Fate::Absent);
        assert_eq!(shop.count(SKU).await, 0);
    }

    #[tokio::test]
    async fn an_answer_that_no_layer_kept_belongs_to_another_request() {
        let shop = Shop::open().await;
        let sink = &shop.service.sink;
        let sent = sent("r1", 33);
        let by_hand = fenced::postgres::PgSink::new(shop.pool.clone());
        by_hand
            .write(&fence(33), &sent, Vec::new())
            .await
            .expect("a write");
        let written = sink.write(&fence(33), &sent, add(SKU, 1)).await;
        assert!(
            matches!(written, Err(SinkError::RequestMismatch { .. })),
            "{written:?}"
        );
        assert_eq!(shop.count(SKU).await, 0);
    }
}
