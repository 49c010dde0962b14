//! A service with a counter for each resource, behind the layer.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use fenced::http::axum::extract::{Path, State};
use fenced::http::axum::routing::post;
use fenced::http::axum::{Json, Router, serve};
use fenced::http::{FenceServer, Gate, Held, HttpSink, HttpWrite, Route, client_builder};
use fenced::testing::SinkUnderTest;
use fenced::{FencingToken, TransactionalSink};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The counters themselves, whoever serves them.
#[derive(Clone, Default)]
pub(crate) struct Counters(Arc<Mutex<HashMap<String, i64>>>);

impl Counters {
    pub(crate) fn of(&self, name: &str) -> i64 {
        let counters = self.0.lock().expect("counters");
        counters.get(name).copied().unwrap_or_default()
    }

    pub(crate) fn change(&self, name: String, order: &Value) -> i64 {
        let mut counters = self.0.lock().expect("counters");
        let counter = counters.entry(name).or_default();
        match (order["add"].as_i64(), order["set"].as_i64()) {
            (Some(more), _) => *counter += more,
            (_, Some(value)) => *counter = value,
            _ => panic!("no order: {order}"),
        }
        *counter
    }
}

/// A server on a port of its own, and a sink for it.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    pub(crate) sink: HttpSink,
    serving: JoinHandle<()>,
}

impl Service {
    pub(crate) async fn start(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = tokio::spawn(async move {
            serve(listener, router).await.expect("a server");
        });
        let client = client_builder().build().expect("a client");
        let sink = HttpSink::new(client, &format!("http://{address}")).expect("a sink");
        Self {
            address,
            sink,
            serving,
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The route of a counter: its resource is the name.
pub(crate) fn by_name() -> Route {
    Route::by(|parts| {
        let (_, encoded) = parts.uri.path().rsplit_once('/')?;
        let byte = |digits: &str| u8::from_str_radix(digits, 16).ok();
        let bytes = encoded.split('%').skip(1).map(byte);
        String::from_utf8(bytes.collect::<Option<_>>()?).ok()
    })
}

/// The path of a counter, with every byte encoded.
pub(crate) fn path(name: &str) -> String {
    let encoded = name.bytes().map(|byte| format!("%{byte:02X}"));
    format!("/counters/{}", encoded.collect::<String>())
}

pub(crate) fn add(name: &str, amount: i64) -> HttpWrite {
    order(name, &json!({ "add": amount }))
}

pub(crate) fn set(name: &str, value: i64) -> HttpWrite {
    order(name, &json!({ "set": value }))
}

fn order(name: &str, order: &Value) -> HttpWrite {
    HttpWrite::post(path(name)).json(order).expect("an order")
}

pub(crate) fn token(token: i64) -> FencingToken {
    FencingToken::try_from(token).expect("a token")
}

/// The counters in the memory of a service, behind its gate.
pub(crate) struct Counting {
    pub(crate) service: Service,
    pub(crate) counters: Counters,
}

impl Counting {
    pub(crate) async fn start<S: TransactionalSink + 'static>(fence: &FenceServer<S>) -> Self {
        let counters = Counters::default();
        let count = post(count::<S>).layer(fence.layer(by_name()));
        let router = Router::new()
            .route("/counters/{name}", count)
            .nest_service("/.fence", fence.endpoint())
            .with_state(counters.clone());
        Self {
            service: Service::start(router).await,
            counters,
        }
    }

    /// Behind a gate that lets every token in.
    pub(crate) async fn in_memory() -> Self {
        let gate = Gate::builder().max_step(u64::MAX).in_memory();
        Self::start(&FenceServer::new(gate)).await
    }
}

async fn count<S: TransactionalSink>(
    held: Held<S::Transaction>,
    State(counters): State<Counters>,
    Path(name): Path<String>,
    Json(order): Json<Value>,
) -> Json<i64> {
    assert_eq!(held.fence().resource, name);
    Json(counters.change(name, &order))
}

#[async_trait]
impl SinkUnderTest for Counting {
    type Sink = HttpSink;

    fn sink(&self) -> &HttpSink {
        &self.service.sink
    }

    fn add(&self, resource: &str, amount: i64) -> HttpWrite {
        add(resource, amount)
    }

    fn set(&self, resource: &str, value: i64) -> HttpWrite {
        set(resource, value)
    }

    async fn value(&self, resource: &str) -> i64 {
        self.counters.of(resource)
    }
}
