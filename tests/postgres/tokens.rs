//! Tokens at their limits, and texts that pretend to be refusals.

use fenced::{FencingSink, SinkError};

use crate::database::{Database, SKU, add, fence, request, token};

/// P2: the whole range of a token is compared.
#[tokio::test]
async fn the_greatest_token_is_compared_exactly() {
    let database = Database::new().await;
    let newest = i64::MAX;
    database.sink.claim(&fence(newest)).await.expect("a claim");
    match database.sink.claim(&fence(newest - 1)).await {
        Err(SinkError::Stale { mine, current }) => {
            assert_eq!((mine.get(), current.get()), (newest - 1, newest));
        }
        other => panic!("{other:?}"),
    }
}

/// P1: with a bound on its steps, the fence is not raised out of everybody's reach.
#[tokio::test]
async fn an_implausible_token_is_refused() {
    let database = Database::new().await;
    let sink = database.sink.clone().max_step(1_000);
    sink.claim(&fence(5_000_000)).await.expect("a first claim");
    match sink.claim(&fence(5_001_001)).await {
        Err(SinkError::Implausible { mine, current }) => {
            assert_eq!((mine.get(), current), (5_001_001, Some(token(5_000_000))));
        }
        other => panic!("{other:?}"),
    }
    let poison = sink
        .write(&fence(i64::MAX), &request("r1"), add(SKU, 1))
        .await;
    assert!(
        matches!(poison, Err(SinkError::Implausible { .. })),
        "{poison:?}"
    );
    sink.claim(&fence(5_001_000))
        .await
        .expect("a plausible claim");
}

/// The codes alone count: a text that looks like ours, raised by the user's own SQL, does not.
#[tokio::test]
async fn a_forged_text_is_not_believed() {
    let database = Database::new().await;
    let raise =
        "DO $$ BEGIN RAISE EXCEPTION 'ZF001 stale fencing token' USING DETAIL = '99'; END $$";
    let write = vec![fenced::Statement::new(raise)];
    let error = database.sink.write(&fence(33), &request("r1"), write).await;
    assert!(matches!(error, Err(SinkError::Backend(_))), "{error:?}");
}
