use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use fenced::http::axum::extract::State;
use fenced::http::axum::http::StatusCode;
use fenced::http::axum::routing::{get, post};
use fenced::http::axum::{Json, Router, serve};
use fenced::http::{FenceServer, FileStore, Gate, GatePermit, Held, Route};
use tokio::net::TcpListener;

use crate::Failure;

/// The device, which knows nothing of locks and tokens.
#[derive(Default)]
pub(crate) struct Valve {
    percent: AtomicU8,
    moved: AtomicU32,
}

impl Valve {
    pub(crate) fn percent(&self) -> u8 {
        self.percent.load(Ordering::Relaxed)
    }

    pub(crate) fn moved(&self) -> u32 {
        self.moved.load(Ordering::Relaxed)
    }

    fn move_to(&self, percent: u8) {
        self.percent.store(percent, Ordering::Relaxed);
        self.moved.fetch_add(1, Ordering::Relaxed);
    }
}

/// Starts the gateway, and says where it is.
pub(crate) async fn start(folder: &Path, valve: Arc<Valve>) -> Result<String, Failure> {
    // What the gateway has seen is in a file, so that it survives a restart.
    let store = FileStore::open(folder.join("fences")).await?;
    let fence = FenceServer::new(Gate::builder().open(store).await?);
    // Commands are fenced by the lock that operators take. Anyone may look.
    let route = Route::new("/valves/{id}", "/locks/valves/<id>");
    let router = Router::new()
        .route("/valves/{id}", post(command).layer(fence.layer(route)))
        .route("/valves/{id}/position", get(position))
        .nest_service("/.fence", fence.endpoint())
        .with_state(valve);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { serve(listener, router).await });
    Ok(format!("http://{address}"))
}

/// Runs only for the current holder, and nobody newer can begin before it has ended.
async fn command(
    _held: Held<GatePermit>,
    State(valve): State<Arc<Valve>>,
    Json(percent): Json<u8>,
) -> Result<Json<u8>, (StatusCode, &'static str)> {
    if percent > 100 {
        return Err((StatusCode::BAD_REQUEST, "a valve opens up to 100 %"));
    }
    valve.move_to(percent);
    Ok(Json(valve.percent()))
}

async fn position(State(valve): State<Arc<Valve>>) -> Json<u8> {
    Json(valve.percent())
}
