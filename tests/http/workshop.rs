//! A service whose handler does what the body of a request says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fenced::http::axum::Router;
use fenced::http::axum::body::Body;
use fenced::http::axum::extract::State;
use fenced::http::axum::http::{Response, StatusCode};
use fenced::http::axum::routing::any;
use fenced::http::{FenceServer, FenceServerBuilder, Gate, Held, HttpWrite, Route};
use fenced::{Fence, Request, TransactionalSink};
use tokio::sync::Semaphore;

use crate::counters::{Service, token};

pub(crate) const BENCH: &str = "/locks/benches/7";
pub(crate) const PATH: &str = "/benches/7";

/// What a handler has done, and how it is told to go on.
#[derive(Clone)]
pub(crate) struct Bench(Arc<Shared>);

struct Shared {
    effects: AtomicUsize,
    begun: Semaphore,
    go_on: Semaphore,
}

impl Bench {
    fn new() -> Self {
        Self(Arc::new(Shared {
            effects: AtomicUsize::new(0),
            begun: Semaphore::new(0),
            go_on: Semaphore::new(0),
        }))
    }

    pub(crate) fn effects(&self) -> usize {
        self.0.effects.load(Ordering::SeqCst)
    }

    /// Waits until a handler waits.
    pub(crate) async fn has_begun(&self) {
        self.0.begun.acquire().await.expect("a handler").forget();
    }

    pub(crate) fn go_on(&self) {
        self.0.go_on.add_permits(1);
    }
}

pub(crate) struct Workshop {
    pub(crate) service: Service,
    pub(crate) bench: Bench,
}

impl Workshop {
    /// Behind a gate in memory.
    pub(crate) async fn open() -> Self {
        Self::with(|server| server).await
    }

    pub(crate) async fn with(
        options: impl FnOnce(FenceServerBuilder<Gate>) -> FenceServerBuilder<Gate>,
    ) -> Self {
        let gate = Gate::builder().busy_timeout(Duration::from_millis(100));
        let server = FenceServer::builder(gate.in_memory());
        Self::serve(&options(server).build()).await
    }

    pub(crate) async fn serve<S: TransactionalSink + 'static>(fence: &FenceServer<S>) -> Self {
        let (router, bench) = router(fence);
        let service = Service::start(router).await;
        Self { service, bench }
    }
}

pub(crate) fn router<S: TransactionalSink + 'static>(fence: &FenceServer<S>) -> (Router, Bench) {
    let bench = Bench::new();
    let layer = fence.layer(Route::new("/benches/{id}", "/locks/benches/<id>"));
    let router = Router::new()
        .route("/benches/{*id}", any(work::<S>).layer(layer))
        .nest_service("/.fence", fence.endpoint())
        .with_state(bench.clone());
    (router, bench)
}

async fn work<S: TransactionalSink>(
    held: Held<S::Transaction>,
    State(bench): State<Bench>,
    order: String,
) -> Response<Body> {
    bench.0.effects.fetch_add(1, Ordering::SeqCst);
    let answer = |status: StatusCode, body: &str| {
        let answer = Response::builder().status(status);
        answer.body(Body::from(body.to_owned())).expect("an answer")
    };
    match order.as_str() {
        "wait" => {
            bench.0.begun.add_permits(1);
            bench.0.go_on.acquire().await.expect("a word").forget();
            answer(StatusCode::OK, "waited")
        }
        "create" => {
            let answer = Response::builder().status(StatusCode::CREATED);
            let answer = answer.header("location", "/made").header("x-own", "1");
            answer.body(Body::from(vec![0xff, 0])).expect("an answer")
        }
        "refuse" => answer(StatusCode::CONFLICT, "no"),
        "fail" => answer(StatusCode::BAD_GATEWAY, "the device is away"),
        "panic" => panic!("as it was told"),
        "long" => answer(StatusCode::OK, &"x".repeat(2 << 20)),
        "forever" => std::future::pending().await,
        "keep" => {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_mins(1)).await;
                drop(held);
            });
            answer(StatusCode::OK, "kept")
        }
        "lie" => {
            let answer = Response::builder().status(StatusCode::BAD_GATEWAY);
            let answer = answer.header("fenced-outcome", "applied");
            answer.body(Body::empty()).expect("an answer")
        }
        _ => answer(StatusCode::OK, &order),
    }
}

pub(crate) fn fence(number: i64) -> Fence {
    Fence::new(BENCH, token(number))
}

pub(crate) fn order(what: &'static str) -> HttpWrite {
    HttpWrite::post(PATH).body(what)
}

pub(crate) fn request(id: &str) -> Request {
    Request::new(id, &id)
}
