//! Several operations in one write: all of them, or none.

use std::time::Duration;

use fenced::redis::{RedisBatch, RedisFenced};
use fenced::{Answer, Fate, FencingSink, Outcome, SinkError};

use crate::holder::holder;
use crate::server::{SKU, Server, fence, request};

async fn write(server: &Server, id: &str, batch: RedisBatch) -> Result<Outcome<Answer>, SinkError> {
    server
        .sink
        .write(&fence(33), &request(id), batch.into())
        .await
}

async fn answers(server: &Server, id: &str, batch: RedisBatch) -> Vec<i64> {
    let outcome = write(server, id, batch).await.expect("a write");
    outcome.into_answer().decode().expect("numbers")
}

#[tokio::test]
async fn every_operation_is_applied_and_answered() {
    let server = Server::new().await;
    let key = |name| server.key(name);
    let batch = RedisBatch::new()
        .set(key("text"), "x")
        .set_for(key("short"), "y", Duration::from_secs(100))
        .incr(key("count"), -2)
        .hset(key("hash"), "field", "z")
        .hincr(key("hash"), "number", 7)
        .del(key("nothing"));
    assert_eq!(answers(&server, "r1", batch).await, [1, 1, -2, 1, 7, 0]);
    assert_eq!(server.ask::<String>(&["GET", &key("text")]).await, "x");
    assert_eq!(server.ask::<i64>(&["TTL", &key("text")]).await, -1);
    let time = server.ask::<i64>(&["PTTL", &key("short")]).await;
    assert!((90_000..=100_000).contains(&time), "{time}");
    let hash: Vec<String> = server.ask(&["HGETALL", &key("hash")]).await;
    assert_eq!(hash, ["field", "z", "number", "7"]);
    let again = RedisBatch::new()
        .del(key("text"))
        .hset(key("hash"), "field", "new");
    assert_eq!(answers(&server, "r2", again).await, [1, 0]);
    assert_eq!(answers(&server, "r3", RedisBatch::new()).await, [0_i64; 0]);
}

/// A script that fails keeps what it has written, so that all is checked before.
#[tokio::test]
async fn what_does_not_fit_changes_nothing() {
    let server = Server::new().await;
    let key = |name| server.key(name);
    server.ask::<()>(&["RPUSH", &key("list"), "x"]).await;
    server.ask::<()>(&["SET", &key("text"), "abc"]).await;
    server
        .ask::<()>(&["SET", &key("most"), &i64::MAX.to_string()])
        .await;
    server
        .ask::<()>(&[
            "HSET",
            &key("hash"),
            "least",
            &i64::MIN.to_string(),
            "text",
            "07",
        ])
        .await;
    let first = || {
        RedisBatch::new()
            .set(key("first"), "x")
            .incr(key("count"), 1)
    };
    let unfit = [
        ("another type", first().hset(key("list"), "f", "x")),
        ("another type", first().incr(key("list"), 1)),
        ("another type", first().incr(key("hash"), 1)),
        ("another type", first().hincr(key("text"), "f", 1)),
        ("no whole number", first().incr(key("text"), 1)),
        ("no whole number", first().hincr(key("hash"), "text", 1)),
        ("more than 64 bits", first().incr(key("most"), 1)),
        ("more than 64 bits", first().hincr(key("hash"), "least", -1)),
        ("changes", first().del(key("first"))),
        ("not tagged", first().del("untagged")),
    ];
    let before = server.keys().await;
    for (number, (reason, batch)) in unfit.into_iter().enumerate() {
        let id = format!("r{number}");
        let error = write(&server, &id, batch)
            .await
            .expect_err("it does not fit");
        assert!(matches!(error, SinkError::Backend(_)), "{error}");
        assert!(error.to_string().contains(reason), "{reason}: {error}");
        let sent = request(&id).sent_under(fence(33));
        assert_eq!(
            server.sink.outcome(&sent).await.expect("a fate"),
            Fate::Unknown
        );
    }
    assert_eq!(
        server.keys().await,
        before,
        "neither data, nor fence, nor request"
    );
    let error = write(&server, "r3", first().hset(key("list"), "f", "x"))
        .await
        .expect_err("a list");
    assert!(error.to_string().contains("operation 3"), "{error}");
    assert!(error.to_string().contains(&key("list")), "{error}");
}

/// The numbers of Lua are rounded above 2^53: neither sums nor answers may be.
#[tokio::test]
async fn sums_are_exact_over_64_bits() {
    let server = Server::new().await;
    let two_53 = 1_i64 << 53;
    let sums = [
        two_53,
        1,
        -two_53 - 1,
        -two_53,
        -1,
        i64::MIN + two_53 + 1,
        i64::MAX,
        i64::MAX,
        1,
    ];
    let (mut sum, mut number) = (0_i64, 0);
    for amount in sums {
        number += 1;
        let batch = RedisBatch::new().incr(server.key("count"), amount).hincr(
            server.key("hash"),
            "count",
            amount,
        );
        let id = format!("r{number}");
        sum += amount;
        assert_eq!(answers(&server, &id, batch).await, [sum, sum], "{amount}");
        assert_eq!(server.count("count").await, sum);
    }
    let too_much = RedisBatch::new().incr(server.key("count"), i64::MAX - sum + 1);
    write(&server, "too much", too_much)
        .await
        .expect_err("65 bits");
    let most = RedisBatch::new().incr(server.key("count"), i64::MAX - sum);
    assert_eq!(answers(&server, "most", most).await, [i64::MAX]);
}

#[tokio::test]
async fn keys_and_values_may_be_any_bytes() {
    let server = Server::new().await;
    let mut odd: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"\0".to_vec(),
        b"\xff\xfe".to_vec(),
        b"\r\n$3\r\nFOO\r\n".to_vec(),
        b"'..redis.call('FLUSHALL')..'".to_vec(),
        b"]]; redis.call('FLUSHALL') --".to_vec(),
        b"set".to_vec(),
        b"FENCED_STALE 99".to_vec(),
    ];
    odd.push(vec![b'x'; 1 << 20]);
    for (number, bytes) in odd.iter().enumerate() {
        let mut key = server.key("").into_bytes();
        key.extend_from_slice(bytes);
        let hash = server.key(&format!("hash-{number}"));
        let batch = RedisBatch::new()
            .set(&*key, &**bytes)
            .hset(&*hash, &**bytes, &**bytes);
        assert_eq!(answers(&server, &format!("r{number}"), batch).await, [1, 1]);
        let got: Vec<u8> = redis::cmd("GET")
            .arg(&key)
            .query_async(&mut server.connection.clone())
            .await
            .expect("bytes");
        assert!(got == *bytes, "{number}");
        let read = holder(33, async |guard| {
            guard.fence(&server.sink).hget(&*hash, &**bytes).await
        });
        assert!(
            read.await.expect("bytes").as_ref() == Some(bytes),
            "{number}"
        );
    }
}

#[tokio::test]
async fn the_keys_of_the_sink_are_not_written() {
    let server = Server::new().await;
    for key in [
        format!("fenced:{{{}}}:fences", server.tag),
        format!("fenced:{{{}}}:request:r", server.tag),
    ] {
        let error = write(&server, "r1", RedisBatch::new().del(key))
            .await
            .expect_err("ours");
        assert!(error.to_string().contains("of the sink itself"), "{error}");
    }
}

#[tokio::test]
async fn a_section_writes_and_reads_behind_its_fence() {
    let server = Server::new().await;
    server.ask::<()>(&["SET", &server.key("count"), "10"]).await;
    holder(33, async |guard| {
        let stock = guard.fence(&server.sink);
        let key = server.key("count");
        assert_eq!(
            stock.get(&*key).await.expect("a value"),
            Some(b"10".to_vec())
        );
        assert!(
            stock.fence().expect("a fence").claimed,
            "reading has raised the fence"
        );
        let sell = || RedisBatch::new().incr(&*key, -1);
        let [left] = stock.apply::<[i64; 1]>(sell()).await.expect("a sale");
        assert_eq!(left, 9);
        for replayed in [false, true] {
            let sold = stock
                .run::<[i64; 1]>(request("r1"), sell())
                .await
                .expect("a sale");
            assert_eq!(sold.is_replayed(), replayed);
            assert_eq!(sold.into_answer(), [8]);
        }
        let wrong = stock.run::<String>(request("r2"), sell()).await;
        assert!(matches!(wrong, Err(SinkError::Backend(_))), "{wrong:?}");
        assert_eq!(
            stock.hget(server.key("none"), "f").await.expect("nothing"),
            None
        );
    })
    .await;
    assert_eq!(server.count("count").await, 7);
    let newest: String = server.ask(&["HGET", &server.fences(), SKU]).await;
    assert_eq!(newest, "33");
}

/// Expiries that Redis would refuse in the middle of a script.
#[tokio::test]
async fn no_time_is_too_short_or_too_long() {
    let server = Server::new().await;
    for (number, time) in [Duration::ZERO, Duration::MAX].into_iter().enumerate() {
        let sink = server.sink.clone().keep_requests(time);
        let batch =
            RedisBatch::new()
                .incr(server.key("count"), 1)
                .set_for(server.key("short"), "x", time);
        let id = request(&format!("r{number}"));
        let written = sink.write(&fence(33), &id, batch.into()).await;
        written.expect("a write");
    }
    assert_eq!(server.count("count").await, 2);
    let again = RedisBatch::new().incr(server.key("count"), 1);
    let again = write(&server, "r1", again).await.expect("a replay");
    assert!(again.is_replayed(), "kept for good");
}

/// A server without memory refuses the first command that would take some, or none.
#[tokio::test]
async fn a_full_server_takes_all_of_a_batch_or_nothing() {
    let options = fenced_tests::Redis::options().setting("maxmemory", "100mb");
    let redis = options.start().expect("a server");
    let connection = crate::server::connect(&redis.url()).await;
    let sink = fenced::redis::RedisSink::connect(connection.clone()).await;
    let sink = sink.expect("it drops nothing");
    let batch = || {
        RedisBatch::new()
            .del("old")
            .set("new", "x")
            .incr("count", 1)
    };
    crate::server::ask::<()>(&connection, &["SET", "old", "x"]).await;
    sink.claim(&fence(33)).await.expect("a claim");
    crate::server::ask::<()>(&connection, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let claimed = sink.claim(&fence(34)).await.expect_err("it is full");
    assert!(claimed.to_string().contains("OOM"), "{claimed}");
    let written = sink.write(&fence(33), &request("r1"), batch().into()).await;
    let keys: Vec<String> = crate::server::ask(&connection, &["KEYS", "*"]).await;
    match written {
        Ok(_) => assert_eq!(keys.len(), 4, "{keys:?}"),
        Err(_) => assert_eq!(keys.len(), 2, "{keys:?}"),
    }
    crate::server::ask::<()>(&connection, &["CONFIG", "SET", "maxmemory", "0"]).await;
    let written = sink.write(&fence(33), &request("r1"), batch().into()).await;
    written.expect("a write");
    assert_eq!(
        crate::server::ask::<i64>(&connection, &["EXISTS", "old"]).await,
        0
    );
}
