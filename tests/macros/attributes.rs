//! Other attributes beside `#[fenced]`.
#![deny(warnings, clippy::all, clippy::pedantic)]
#![allow(
    clippy::diverging_sub_expression,
    reason = "what `debug_handler` adds has them"
)]

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use fenced::prelude::*;

use crate::inventory::{Inventory, Reply};

impl Inventory {
    #[fenced(lock = "/above/<sku>")]
    #[tracing::instrument(skip(self, sku))]
    async fn above(&self, guard: FencedGuard<'_>, sku: &str) -> Reply<usize> {
        self.add(&guard, 1).await?;
        Ok(sku.len())
    }

    #[tracing::instrument(skip(self), err)]
    #[fenced(lock = "/below/<sku>")]
    async fn below(&self, guard: FencedGuard<'_>, sku: &str) -> Reply<usize> {
        self.add(&guard, 1).await?;
        Ok(sku.len())
    }

    /// Doc comments stay.
    #[must_use = "must"]
    #[inline]
    #[expect(unused_variables)]
    #[fenced(lock = "/a")]
    async fn many(
        &self,
        #[allow(unused_mut)] mut guard: FencedGuard<'_>,
        #[cfg(any())] gone: u8,
    ) -> Result<u32, LockError> {
        let not_used = 1;
        guard.release().await?;
        Ok(1)
    }
}

#[fenced(lock = "/test", service = fenced::MemoryLocks::new())]
#[tokio::test]
async fn a_test_can_be_a_section(guard: FencedGuard<'_>) -> Result<(), LockError> {
    assert_eq!(guard.path().as_str(), "/test");
    Ok(())
}

/// What a handler answers with; axum wants an error that is a response.
struct Refused(LockError);

impl From<LockError> for Refused {
    fn from(error: LockError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, self.0.to_string()).into_response()
    }
}

#[fenced(lock = "/http/<sku>", service = locks)]
#[axum::debug_handler]
async fn handler(
    State(locks): State<fenced::MemoryLocks>,
    guard: FencedGuard<'_>,
    Path(sku): Path<String>,
) -> Result<String, Refused> {
    Ok(format!("{} {sku}", guard.path()))
}

#[tokio::test]
async fn other_attributes_go_on_working() {
    let inventory = Inventory::default();
    assert_eq!(inventory.above("abc").await.unwrap(), 3);
    assert_eq!(inventory.below("abc").await.unwrap(), 3);
    assert_eq!(inventory.many().await.unwrap(), 1);
    let locks = inventory.locks.clone();
    let _: axum::Router = axum::Router::new()
        .route("/{sku}", axum::routing::get(handler))
        .with_state(locks.clone());
    let answer = handler(State(locks), Path("x".to_owned())).await;
    assert_eq!(
        answer.unwrap_or_else(|refused| refused.0.to_string()),
        "/http/x x"
    );
}
