//! Tokens that are not true.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fenced::http::{
    Authority, FenceServer, Gate, HttpRefusal, ProblemKind, TokenKeys, TokenSigner,
};
use fenced::{BoxError, Fence, FencingSink, FencingToken, SinkError};

use crate::counters::token;
use crate::workshop::{Workshop, fence, order, request};

fn kind(error: &SinkError) -> Option<ProblemKind> {
    let (SinkError::Backend(cause) | SinkError::Retry(cause)) = error else {
        return None;
    };
    cause.downcast_ref::<HttpRefusal>()?.kind
}

#[tokio::test]
async fn the_greatest_token_locks_nobody_out() {
    let shop = Workshop::open().await;
    let sink = &shop.service.sink;
    sink.claim(&fence(33)).await.expect("a claim");
    for bench in [fence(1).resource, "/never/seen".to_owned()] {
        let greatest = Fence::new(bench, FencingToken::MAX);
        let refused = sink.claim(&greatest).await;
        let Err(SinkError::Implausible { current, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(current, Some(token(33)));
    }
    sink.claim(&fence(34))
        .await
        .expect("everybody else goes on");
    let far = 34 + i64::try_from(Gate::MAX_STEP).expect("a number");
    assert!(sink.claim(&fence(far + 1)).await.is_err());
    sink.claim(&fence(far))
        .await
        .expect("a step that is believed");
}

#[tokio::test]
async fn the_first_token_of_all_is_bounded_too() {
    let shop = Workshop::open().await;
    let sink = &shop.service.sink;
    let refused = sink.claim(&fence(i64::MAX)).await;
    assert!(
        matches!(refused, Err(SinkError::Implausible { current: None, .. })),
        "{refused:?}"
    );
    sink.claim(&fence(33))
        .await
        .expect("everybody else goes on");
}

const SECRET: [u8; 32] = *b"a secret of exactly thirty-two b";

async fn signed_shop() -> Workshop {
    let keys = TokenKeys::new("workshop")
        .key("k1", &SECRET)
        .expect("a key");
    Workshop::with(|server| server.signed_by(keys)).await
}

#[tokio::test]
async fn an_unsigned_token_is_rejected_on_every_way_in() {
    let shop = signed_shop().await;
    let sink = &shop.service.sink;
    let rejected = Some(ProblemKind::TokenRejected);
    let claimed = sink.claim(&fence(33)).await.expect_err("a refusal");
    assert_eq!(kind(&claimed), rejected);
    let written = sink.write(&fence(33), &request("r1"), order("x")).await;
    assert_eq!(kind(&written.expect_err("a refusal")), rejected);
    assert_eq!(shop.bench.effects(), 0);
}

#[tokio::test]
async fn a_signed_token_is_let_in_until_it_expires() {
    let shop = signed_shop().await;
    let signer =
        |secret: &[u8], audience: &str| TokenSigner::new("k1", secret, audience).expect("a signer");
    let good = shop
        .service
        .sink
        .clone()
        .credentials(signer(&SECRET, "workshop"));
    good.claim(&fence(33)).await.expect("a claim");
    let written = good.write(&fence(33), &request("r1"), order("x")).await;
    written.expect("a write");
    for bad in [
        signer(&[1; 32], "workshop"),
        signer(&SECRET, "elsewhere"),
        signer(&SECRET, "workshop").lifetime(Duration::ZERO),
    ] {
        let sink = shop.service.sink.clone().credentials(bad);
        let refused = sink.claim(&fence(34)).await.expect_err("a refusal");
        assert_eq!(kind(&refused), Some(ProblemKind::TokenRejected));
    }
    // One that is late is late, however well signed.
    good.claim(&fence(34)).await.expect("a claim");
    let stale = good.claim(&fence(33)).await;
    assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
    let asked = good.outcome(&request("r1")).await;
    assert!(matches!(asked, Ok(fenced::Fate::Applied(_))), "{asked:?}");
}

/// Vouches for even tokens, while it can be reached.
#[derive(Clone, Default)]
struct Even {
    asked: Arc<AtomicUsize>,
    is_away: Arc<AtomicBool>,
}

#[async_trait]
impl Authority for Even {
    async fn vouches_for(&self, fence: &Fence) -> Result<bool, BoxError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.is_away.load(Ordering::SeqCst) {
            return Err("the lock service is away".into());
        }
        Ok(fence.token.get() % 2 == 0)
    }
}

#[tokio::test]
async fn an_authority_is_asked_before_a_fence_is_raised_and_only_then() {
    let authority = Even::default();
    let gate = Gate::builder().in_memory();
    let server = FenceServer::builder(gate)
        .authority(authority.clone())
        .build();
    let shop = Workshop::serve(&server).await;
    let sink = &shop.service.sink;
    let refused = sink.claim(&fence(33)).await.expect_err("a refusal");
    assert_eq!(kind(&refused), Some(ProblemKind::TokenRejected));
    let refused = sink.write(&fence(33), &request("r1"), order("x")).await;
    assert_eq!(
        kind(&refused.expect_err("a refusal")),
        Some(ProblemKind::TokenRejected)
    );
    sink.claim(&fence(34)).await.expect("a claim");
    let asked = authority.asked.load(Ordering::SeqCst);
    assert_eq!(asked, 3);
    for id in ["r1", "r2", "r1"] {
        sink.write(&fence(34), &request(id), order("x"))
            .await
            .expect("a write");
        sink.claim(&fence(34)).await.expect("a claim");
        let stale = sink.claim(&fence(33)).await;
        assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
    }
    assert_eq!(authority.asked.load(Ordering::SeqCst), asked);
    authority.is_away.store(true, Ordering::SeqCst);
    let away = sink.claim(&fence(36)).await.expect_err("a refusal");
    assert!(away.is_retryable(), "{away}");
    authority.is_away.store(false, Ordering::SeqCst);
    sink.claim(&fence(36)).await.expect("a claim");
}

#[tokio::test]
async fn resources_that_are_not_ours_are_not_remembered() {
    let ours = |name: &str| name.starts_with("/locks/benches/");
    let shop = Workshop::with(|server| server.resources(ours)).await;
    let sink = &shop.service.sink;
    let elsewhere = Fence::new("/elsewhere", token(33));
    let refused = sink.claim(&elsewhere).await.expect_err("a refusal");
    assert_eq!(kind(&refused), Some(ProblemKind::TokenRejected));
    sink.claim(&fence(33)).await.expect("a claim");
}
