//! Lua of the user's behind the check of the fence.

use fenced::redis::{RedisFenced, RedisScript, RedisSink};
use fenced::{Fate, FencingSink, SinkError};
use fenced_tests::Redis;
use serde_json::{Value, json};

use crate::holder::holder;
use crate::server::{Server, ask, connect, fence, request};

const SELL: &str = "
    local left = tonumber(redis.call('GET', KEYS[1]) or '0') - tonumber(ARGV[1])
    if left < 0 then
        return redis.error_reply('SOLDOUT nothing is left')
    end
    redis.call('SET', KEYS[1], left)
    return left -- and a comment at the end";

#[tokio::test]
async fn a_script_is_applied_once() {
    let server = Server::new().await;
    let sell = RedisScript::new(SELL);
    server.ask::<()>(&["SET", &server.key("count"), "10"]).await;
    let call = || sell.call().key(server.key("count")).arg("4");
    holder(33, async |guard| {
        let stock = guard.fence(&server.sink);
        for (id, replayed, expected) in [("r1", false, 6), ("r1", true, 6), ("r2", false, 2)] {
            let sold = stock.run::<i64>(request(id), call()).await.expect("a sale");
            assert_eq!(
                (sold.is_replayed(), sold.into_answer()),
                (replayed, expected)
            );
        }
        let error = stock
            .run::<i64>(request("r3"), call())
            .await
            .expect_err("sold out");
        assert!(error.to_string().contains("nothing is left"), "{error}");
        server.ask::<()>(&["SET", &server.key("count"), "5"]).await;
        assert_eq!(
            stock
                .run::<i64>(request("r3"), call())
                .await
                .expect("a sale")
                .into_answer(),
            1
        );
    })
    .await;
    server.sink.claim(&fence(34)).await.expect("a claim");
    let stale = server
        .sink
        .write(&fence(33), &request("r4"), call().into())
        .await;
    assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
    assert_eq!(server.count("count").await, 1);
}

#[tokio::test]
async fn what_a_script_returns_is_kept_as_json() {
    let server = Server::new().await;
    let answers = [
        ("return 7", json!(7)),
        ("return 9007199254740991", json!(9_007_199_254_740_991_i64)),
        ("return -0.5", json!(-0.5)),
        ("return 'a \"b\"\\n'", json!("a \"b\"\n")),
        ("return {1, 'x', false}", json!([1, "x", false])),
        ("return {left = 7}", json!({"left": 7})),
        ("return true", json!(true)),
        ("return nil", json!(null)),
        ("", json!(null)),
        ("return 0/0", json!(null)),
        ("return {f = function() end}", json!(null)),
        ("return redis.status_reply('FINE')", json!({"ok": "FINE"})),
        (
            "return {#KEYS, #ARGV, KEYS[1] == nil, ARGV[2]}",
            json!([0, 2, true, "\u{0}\"]]"]),
        ),
    ];
    for (number, (text, expected)) in answers.into_iter().enumerate() {
        let write = RedisScript::new(text).call().arg("a").arg("\0\"]]");
        let id = request(&format!("r{number}"));
        for _ in 0..2 {
            let outcome = server
                .sink
                .write(&fence(33), &id, write.clone().into())
                .await;
            let answer = outcome
                .unwrap_or_else(|error| panic!("{text}: {error}"))
                .into_answer();
            assert_eq!(answer.decode::<Value>().expect("JSON"), expected, "{text}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_no_text_is_kept_as_well_as_it_can_be() {
    let server = Server::new().await;
    let write = RedisScript::new("return '\\255'").call();
    holder(33, async |guard| {
        let stock = guard.fence(&server.sink);
        for _ in 0..2 {
            let answer = stock
                .run::<String>(request("r1"), write.clone())
                .await
                .expect("a write");
            assert_eq!(answer.into_answer(), "\u{fffd}");
        }
    })
    .await;
}

/// Redis does not undo: the fence was raised before, so that no older holder follows.
#[tokio::test]
async fn a_script_that_fails_is_not_kept_and_its_fence_is_raised() {
    let server = Server::new().await;
    let broken = [
        "redis.call('INCR', KEYS[1])\nredis.call('HSET', KEYS[1], 'f', 'x')",
        "redis.call('INCR', KEYS[1])\nerror('broken')",
        "redis.call('INCR', KEYS[1])\nreturn {err = 'BROKEN'}",
    ];
    for (number, text) in (1..).zip(broken) {
        let write = RedisScript::new(text).call().key(server.key("count"));
        let sent = request(&format!("r{number}")).sent_under(fence(33));
        let error = server
            .sink
            .write(&fence(33), &sent, write.into())
            .await
            .expect_err("broken");
        assert!(matches!(error, SinkError::Backend(_)), "{error}");
        assert_eq!(
            server.sink.outcome(&sent).await.expect("a fate"),
            Fate::Unknown
        );
        assert_eq!(server.count("count").await, number);
    }
    let stale = server.sink.claim(&fence(32)).await;
    assert!(matches!(stale, Err(SinkError::Stale { .. })), "{stale:?}");
    let unparsable = RedisScript::new("return return").call();
    let error = server
        .sink
        .write(&fence(33), &request("r9"), unparsable.into())
        .await;
    assert!(matches!(error, Err(SinkError::Backend(_))), "{error:?}");
}

#[tokio::test]
async fn an_error_names_the_line_of_the_script() {
    let server = Server::new().await;
    let write = RedisScript::new("local fine = 1\nerror('broken')").call();
    let error = server
        .sink
        .write(&fence(33), &request("r1"), write.into())
        .await;
    let error = error.expect_err("broken").to_string();
    assert!(error.contains("user_script:2: broken"), "{error}");
}

#[tokio::test]
async fn the_keys_of_a_script_are_tagged() {
    let server = Server::new().await;
    let write = RedisScript::new(SELL).call().key("count").arg("1");
    let error = server
        .sink
        .write(&fence(33), &request("r1"), write.into())
        .await;
    assert!(
        error
            .expect_err("no tag")
            .to_string()
            .contains("not tagged")
    );
}

/// A server that has forgotten the scripts learns them again, with the call.
#[tokio::test]
async fn a_flushed_script_is_sent_again() {
    // All that use a server share its scripts.
    let server = Redis::start().expect("a server");
    let connection = connect(&server.url()).await;
    let sink = RedisSink::new(connection.clone());
    let sell = RedisScript::new(SELL);
    ask::<()>(&connection, &["SET", "count", "10"]).await;
    for number in 1..=3 {
        ask::<()>(&connection, &["SCRIPT", "FLUSH"]).await;
        let id = request(&format!("r{number}"));
        let write = sell.call().key("count").arg("1");
        sink.claim(&fence(number)).await.expect("a claim");
        let sold = sink.write(&fence(number), &id, write.into()).await;
        let sold = sold.expect("a sale");
        assert!(!sold.is_replayed());
        let fate = sink.outcome(&id).await.expect("a fate");
        assert_eq!(fate, Fate::Applied(sold.into_answer()));
        assert_eq!(
            ask::<i64>(&connection, &["GET", "count"]).await,
            10 - number
        );
    }
}
