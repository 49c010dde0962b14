//! What the layer adds to a request, beside the same router without it; no network is in between.
//!
//! `tests/run bench -- --bench http`

use std::sync::atomic::{AtomicU64, Ordering};

use fenced::http::axum::Router;
use fenced::http::axum::body::Body;
use fenced::http::axum::http::{Request, StatusCode};
use fenced::http::axum::routing::post;
use fenced::http::{FenceServer, FileStore, Gate, Route};
use fenced_tests::Times;
use tower::ServiceExt as _;

const ROUNDS: usize = 15;
const OPERATIONS: u32 = 5_000;
/// What the layer may add to a request.
const WANTED: f64 = 15.0;

const PLAIN: &str = "plain";
const FENCED: &str = "fenced";
const NAMED: &str = "fenced, with its answer kept";
const DURABLE: &str = "fenced, with its answer on the disk";

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    // As a server's connections are: on a worker of the runtime.
    tokio::spawn(measure()).await?
}

async fn measure() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let store = FileStore::open(folder.path().join("fences")).await?;
    let plain = Router::new().route("/valves/{id}", post(command));
    let gate = || Gate::builder().max_answer_bytes(usize::MAX);
    let fenced = router(gate().in_memory());
    let durable = router(gate().open(store).await?);
    let mut times = Times::default();
    for _ in 0..ROUNDS {
        times
            .take(PLAIN, OPERATIONS, run(&plain, OPERATIONS, false))
            .await;
        times
            .take(FENCED, OPERATIONS, run(&fenced, OPERATIONS, false))
            .await;
        times
            .take(NAMED, OPERATIONS, run(&fenced, OPERATIONS, true))
            .await;
        times.take(DURABLE, 200, run(&durable, 200, true)).await;
    }
    let micros = |kind| 1e6 / times.rate(kind);
    println!(
        "{:<38}{:>8.2} µs",
        "the router and its handler alone",
        micros(PLAIN)
    );
    for (kind, wanted) in [
        (FENCED, Some(WANTED)),
        (NAMED, Some(WANTED)),
        (DURABLE, None),
    ] {
        let more = micros(kind) - micros(PLAIN);
        let verdict = match wanted {
            Some(wanted) if more < wanted => format!("wanted less than {wanted}: ok"),
            Some(wanted) => format!("wanted less than {wanted}: short"),
            None => "of which one fsync".to_owned(),
        };
        println!("{kind:<38}{more:>8.2} µs more, {verdict}");
    }
    Ok(())
}

async fn command(order: String) -> String {
    order
}

fn router(gate: Gate) -> Router {
    let route = Route::new("/valves/{id}", "/locks/valves/<id>");
    let layer = FenceServer::new(gate).layer(route);
    Router::new().route("/valves/{id}", post(command).layer(layer))
}

/// One request after the other, all by one holder.
async fn run(router: &Router, requests: u32, is_named: bool) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    for _ in 0..requests {
        let mut request = Request::post("/valves/7").header("fencing-token", "\"4294967339\"");
        if is_named {
            let id = NEXT.fetch_add(1, Ordering::Relaxed);
            request = request.header("idempotency-key", format!("\"command-{id}\""));
        }
        let request = request
            .body(Body::from("{\"open\":40}"))
            .expect("a request");
        let answer = router.clone().oneshot(request).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
    }
}
