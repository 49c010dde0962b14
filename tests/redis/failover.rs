//! A replica that takes over, and had not received everything: in what is left, tokens never fall.

use std::time::Duration;

use fenced::redis::{RedisBatch, RedisFenced, RedisScript, RedisSink};
use fenced::{FencingSink, SinkError};
use fenced_tests::Redis;

use crate::holder::holder;
use crate::server::{ask, connect, fence, request};

async fn sink(server: &Redis) -> RedisSink {
    RedisSink::new(connect(&server.url()).await)
}

fn is_stale<T: std::fmt::Debug>(result: &Result<T, SinkError>) -> bool {
    matches!(result, Err(SinkError::Stale { .. }))
}

/// Cuts the replica off, as a network does before the failover.
fn promote(replica: &Redis) {
    let answer = replica.ask("REPLICAOF NO ONE").expect("an answer");
    assert!(answer.starts_with("+OK"), "{answer}");
}

fn sell() -> RedisBatch {
    RedisBatch::new().incr("count", -1)
}

/// D6: an acknowledged claim is lost, and the holder finds out; what it claims again, stays.
#[tokio::test]
async fn a_forgotten_claim_is_noticed_and_made_again() {
    let mut master = Redis::start().expect("a master");
    let before = sink(&master).await;
    before.claim(&fence(33)).await.expect("a claim");
    let replica = master.replica().expect("a replica");
    promote(&replica);
    before
        .claim(&fence(34))
        .await
        .expect("a claim that only the old master knows");
    master.stop().expect("a stop");
    let after = sink(&replica).await;
    let claimed = fence(34).claimed(true);
    let lost = after.write(&claimed, &request("r1"), sell().into()).await;
    assert!(
        matches!(lost, Err(SinkError::NotClaimed { .. })),
        "{lost:?}"
    );
    // The promise ends here: until 34 has claimed again, 33 is the newest that is known.
    after
        .write(&fence(33), &request("r2"), sell().into())
        .await
        .expect("the older holder");
    after.claim(&fence(34)).await.expect("the claim again");
    let stale = after.write(&fence(33), &request("r3"), sell().into()).await;
    assert!(is_stale(&stale), "{stale:?}");
    after
        .write(&claimed, &request("r1"), sell().into())
        .await
        .expect("a write");
}

/// Effects, requests and fences are replicated as one, in their order: whatever was received is a
/// history without a falling token, and what is repeated has one effect in it.
#[tokio::test]
async fn the_history_of_a_promoted_replica_has_no_falling_token() {
    let mut master = Redis::start().expect("a master");
    let replica = master.replica().expect("a replica");
    let append = RedisScript::new("return redis.call('RPUSH', KEYS[1], ARGV[1])");
    let entry = |number: i64| append.call().key("history").arg(number.to_string());
    let before = sink(&master).await;
    let mut promoted_at = None;
    for number in 1..=200 {
        before.claim(&fence(number)).await.expect("a claim");
        for part in 0..3 {
            let id = request(&format!("{number}-{part}"));
            before
                .write(&fence(number), &id, entry(number).into())
                .await
                .expect("a write");
        }
        if number == 120 {
            promote(&replica);
            promoted_at = Some(number);
        }
    }
    master.stop().expect("a stop");
    assert_eq!(promoted_at, Some(120));
    let after = sink(&replica).await;
    let connection = connect(&replica.url()).await;
    let survived: Vec<i64> = ask(&connection, &["LRANGE", "history", "0", "-1"]).await;
    let newest: String = ask(&connection, &["HGET", "fenced:fences", crate::server::SKU]).await;
    let newest: i64 = newest.parse().expect("a token");
    assert!(
        newest >= *survived.last().expect("some writes"),
        "a fence is never behind its data"
    );
    // All that was acknowledged is repeated, in its order, by holders that may be stale.
    for number in 1..=200 {
        for part in 0..3 {
            let id = request(&format!("{number}-{part}"));
            let repeated = after.write(&fence(number), &id, entry(number).into()).await;
            assert_eq!(
                is_stale(&repeated),
                number < newest,
                "{number} after {newest}: {repeated:?}"
            );
        }
    }
    let history: Vec<i64> = ask(&connection, &["LRANGE", "history", "0", "-1"]).await;
    assert!(history.is_sorted(), "{history:?}");
    let newest_three = history.iter().filter(|&&number| number == 200).count();
    assert_eq!(newest_three, 3, "each request has one effect");
    println!("{} of {} writes survived", survived.len(), 600);
}

#[tokio::test]
async fn a_claim_can_wait_for_replicas() {
    let master = Redis::start().expect("a master");
    let replica = master.replica().expect("a replica");
    let patient = sink(&master)
        .await
        .claim_replicas(1, Duration::from_secs(5));
    patient
        .claim(&fence(33))
        .await
        .expect("a claim that the replica has");
    let replicated = connect(&replica.url()).await;
    let newest: String = ask(&replicated, &["HGET", "fenced:fences", crate::server::SKU]).await;
    assert_eq!(newest, "33");
    let stale = patient.claim(&fence(32)).await;
    assert!(is_stale(&stale), "{stale:?}");
    promote(&replica);
    let patient = patient.claim_replicas(1, Duration::from_millis(50));
    let alone = patient.claim(&fence(34)).await.expect_err("no replica");
    assert!(matches!(&alone, SinkError::Retry(_)), "{alone}");
    assert!(
        alone.to_string().contains("only 0 of 1 replicas"),
        "{alone}"
    );
}

/// A master that nobody follows refuses writes, if its operator wants that.
#[tokio::test]
async fn a_master_without_replicas_may_refuse() {
    let options = Redis::options().setting("min-replicas-to-write", "1");
    let server = options.start().expect("a master");
    let sink = sink(&server).await;
    let refused = sink.claim(&fence(33)).await;
    assert!(matches!(&refused, Err(SinkError::Retry(_))), "{refused:?}");
    let refused = sink.write(&fence(33), &request("r1"), sell().into()).await;
    assert!(matches!(&refused, Err(SinkError::Retry(_))), "{refused:?}");
}

/// Writes to what has become a replica are refused before they change anything.
#[tokio::test]
async fn a_demoted_master_is_another_try() {
    let master = Redis::start().expect("a master");
    let sink = sink(&master).await;
    sink.claim(&fence(33)).await.expect("a claim");
    master.ask("REPLICAOF 127.0.0.1 1").expect("a demotion");
    holder(33, async |guard| {
        let written = guard.fence(&sink).apply::<[i64; 1]>(sell()).await;
        assert!(matches!(&written, Err(SinkError::Retry(_))), "{written:?}");
    })
    .await;
}
