//! A request has one effect, whoever sends it and how often.

use fenced::postgres::{Begin, FencedTx, PgFenced, PgSink};
use fenced::{Fate, Fenced, FencingSink, Outcome, Request, SinkError};

use crate::database::{Database, SKU, add, fence, request};
use crate::holder::holder;

const SELL: &str = "UPDATE stock SET count = count - 1 WHERE sku = $1";

async fn fresh<'g>(stock: Fenced<'g, PgSink>, id: &str) -> FencedTx<'g, String> {
    match stock.begin(request(id)).await.expect("a transaction") {
        Begin::Fresh(tx) => tx,
        Begin::Replayed(answer) => panic!("replayed {answer}"),
    }
}

/// I1: both ran their effect; the first one's commit counts, the second one's effect is undone.
#[tokio::test]
async fn a_twin_gets_the_answer_of_the_first() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        stock.claim().await.expect("a claim");
        let (one, two) = (fresh(stock, "r1").await, fresh(stock, "r1").await);
        one.execute(SELL, &[&SKU]).await.expect("a sale");
        let row = "INSERT INTO stock VALUES ('twin', 1)";
        two.batch_execute(row).await.expect("an effect");
        let first = one.commit("first".to_owned()).await.expect("a commit");
        assert_eq!(first, Outcome::Applied("first".to_owned()));
        let second = two.commit("second".to_owned()).await.expect("a replay");
        assert_eq!(second, Outcome::Replayed("first".to_owned()));
    })
    .await;
    assert_eq!(database.count().await, 99);
    assert_eq!(database.count_of("twin").await, 0);
}

/// I1: the twin waits for the first, which is rolled back, and then counts.
#[tokio::test]
async fn a_twin_of_a_rolled_back_request_is_applied() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        stock.claim().await.expect("a claim");
        // What a twin's commit does, stopped in its middle.
        let first = database.session().await;
        first.run("BEGIN; INSERT INTO fenced.request VALUES ('r1', '/locks/inventory/4711', 33, repeat('x', 32)::bytea, '1')").await;
        let two = fresh(stock, "r1").await;
        two.execute(SELL, &[&SKU]).await.expect("a sale");
        let rolling_back = async {
            database.wait_until_somebody_waits().await;
            first.run("ROLLBACK").await;
        };
        let (second, ()) = tokio::join!(two.commit("second".to_owned()), rolling_back);
        assert_eq!(second.expect("a commit"), Outcome::Applied("second".to_owned()));
    })
    .await;
    assert_eq!(database.count().await, 99);
}

#[tokio::test]
async fn a_twin_with_another_payload_is_a_mismatch() {
    let database = Database::new().await;
    holder(33, async |guard| {
        let stock = guard.fence(&database.sink);
        stock.claim().await.expect("a claim");
        let one = fresh(stock, "r1").await;
        let other = Request::new("r1", &"another payload");
        let Ok(Begin::Fresh(two)) = stock.begin::<String>(other.clone()).await else {
            panic!("no transaction");
        };
        two.execute(SELL, &[&SKU]).await.expect("a sale");
        one.commit("first".to_owned()).await.expect("a commit");
        let mismatch = two.commit("second".to_owned()).await;
        assert!(
            matches!(mismatch, Err(SinkError::RequestMismatch { .. })),
            "{mismatch:?}"
        );
        let mismatch = stock.begin::<String>(other).await;
        assert!(
            matches!(mismatch, Err(SinkError::RequestMismatch { .. })),
            "{mismatch:?}"
        );
    })
    .await;
    assert_eq!(database.count().await, 100);
    assert_eq!(database.open_transactions().await, 0);
}

/// I3: the request's row is last, so that twins never wait for each other in a circle.
#[tokio::test]
async fn crossing_twins_do_not_deadlock() {
    let database = Database::new().await;
    database.sink.claim(&fence(33)).await.expect("a claim");
    for round in 0..20 {
        let send = async |id: &str| {
            let claimed = fence(33).claimed(true);
            let request = request(&format!("{id}-{round}"));
            let sku = format!("{id}-{round}");
            database.sink.write(&claimed, &request, add(&sku, 1)).await
        };
        let (a, b, c, d) = tokio::join!(send("a"), send("b"), send("b"), send("a"));
        let all = [a, b, c, d].map(|done| done.expect("a write").is_replayed());
        assert_eq!(all.iter().filter(|replayed| **replayed).count(), 2);
        assert_eq!(database.count_of(&format!("a-{round}")).await, 1);
    }
}

/// OUT: what is under way is unknown; a newer claim, which waits for it, makes it certain.
#[tokio::test]
async fn an_outcome_is_unknown_until_a_newer_claim_has_passed() {
    let database = Database::new().await;
    let sent = request("r1").sent_under(fence(33));
    let never = request("r2").sent_under(fence(33));
    holder(33, async |guard| {
        let tx = fresh(guard.fence(&database.sink), "r1").await;
        tx.execute(SELL, &[&SKU]).await.expect("a sale");
        let fate = database.sink.outcome(&sent).await.expect("a fate");
        assert_eq!(fate, Fate::Unknown);
        let next = fence(34);
        let claiming = database.sink.claim(&next);
        let committing = async {
            database.wait_until_somebody_waits().await;
            let fate = database.sink.outcome(&sent).await.expect("a fate");
            assert_eq!(fate, Fate::Unknown);
            tx.commit("sold".to_owned()).await.expect("a commit");
        };
        let (claimed, ()) = tokio::join!(claiming, committing);
        claimed.expect("a claim");
    })
    .await;
    match database.sink.outcome(&sent).await.expect("a fate") {
        Fate::Applied(answer) => assert_eq!(answer.decode::<String>().expect("text"), "sold"),
        other => panic!("{other:?}"),
    }
    let fate = database.sink.outcome(&never).await.expect("a fate");
    assert_eq!(fate, Fate::Absent);
    let fate = database.sink.outcome(&request("r2")).await.expect("a fate");
    assert_eq!(fate, Fate::Unknown);
}

#[tokio::test]
async fn parameters_are_read_by_the_type_of_the_column() {
    let database = Database::new().await;
    let session = database.session().await;
    session
        .run(
            "CREATE TABLE kinds (a int2, b int4, c int8, d float4, e float8, f text, g varchar, \
             h bytea, i bool, j uuid, k numeric, l jsonb, m timestamptz, n int4)",
        )
        .await;
    let row = |b: i64| {
        let insert = "INSERT INTO kinds VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        let insert = fenced::Statement::new(insert)
            .bind(-7_i16)
            .bind(b)
            .bind(i64::MIN)
            .bind(1.5)
            .bind(f64::MIN_POSITIVE)
            .bind("it's \"text\"")
            .bind("short")
            .bind(vec![0_u8, 255, 39])
            .bind(true)
            .bind("6f1d1a3e-7a0e-4c58-9d52-0d9a6b6b0f11")
            .bind("12345678901234567890.5")
            .bind("{\"a\": 1}")
            .bind("2020-01-01T00:00:00Z")
            .bind(None::<i32>);
        vec![insert]
    };
    let write = |id: &'static str, b| {
        let (sink, row) = (&database.sink, row(b));
        async move { sink.write(&fence(33), &request(id), row).await }
    };
    write("r1", 8).await.expect("a row").into_answer();
    let check = "SELECT a = -7 AND b = 8 AND c = -9223372036854775808 AND d = 1.5 AND e > 0 \
        AND f = 'it''s \"text\"' AND g = 'short' AND h = '\\x00ff27' AND i AND k > 0 \
        AND l->>'a' = '1' AND m < now() AND n IS NULL FROM kinds";
    let row = session.client.query_one(check, &[]).await.expect("a row");
    assert!(row.get::<_, bool>(0));
    let out_of_range = write("r2", i64::from(i32::MAX) + 1).await;
    assert!(
        matches!(out_of_range, Err(SinkError::Backend(_))),
        "{out_of_range:?}"
    );
    let bytes = vec![fenced::Statement::new("UPDATE kinds SET b = $1").bind(vec![1_u8])];
    let bytes = database.sink.write(&fence(33), &request("r3"), bytes).await;
    assert!(matches!(bytes, Err(SinkError::Backend(_))), "{bytes:?}");
    let mut fence = fence(33);
    for bad in ["", "a\nb", "a\0b", &"x".repeat(1_025)] {
        bad.clone_into(&mut fence.resource);
        let refused = database.sink.claim(&fence).await;
        assert!(matches!(refused, Err(SinkError::Backend(_))), "{refused:?}");
    }
}
