//! The table of answers, byte for byte.

use std::time::Duration;

use fenced::http::FenceServerBuilder;

use crate::wire::{exchange, exchange_bytes, raw, refusal, status};
use crate::workshop::{PATH, Workshop};

const POST: &str = "POST /benches/7";
const TYPE: &str = "https://github.com/fenced-rs/fenced#";

impl Workshop {
    async fn ask(&self, first: &str, headers: &[&str], body: &str) -> String {
        exchange(self.service.address, raw(first, headers, body)).await
    }

    async fn status(&self, first: &str, headers: &[&str], body: &str) -> (u16, String) {
        let answer = self.ask(first, headers, body).await;
        let (status, name) = status(&answer);
        (status, name.to_owned())
    }
}

fn is(status: u16, name: &str) -> (u16, String) {
    (status, name.to_owned())
}

#[tokio::test]
async fn a_request_without_a_token() {
    let shop = Workshop::open().await;
    let body = format!(
        r#"{{"type":"{TYPE}fencing-token-required","title":"Fencing token required","status":428,"detail":"send the token of your lock as Fencing-Token: \"NUMBER\""}}"#
    );
    let expected = refusal(
        "428 Precondition Required",
        "fenced-outcome: refused\r\n",
        &body,
    );
    assert_eq!(shop.ask(POST, &[], "x").await, expected);
    for first in ["GET /benches/7", "DELETE /benches/7", "OPTIONS /benches/7"] {
        let refused = shop.status(first, &[], "").await;
        assert_eq!(refused, is(428, "fencing-token-required"), "{first}");
    }
    assert_eq!(shop.bench.effects(), 0);
}

#[tokio::test]
async fn a_malformed_token() {
    let shop = Workshop::open().await;
    let body = format!(
        r#"{{"type":"{TYPE}fencing-token-invalid","title":"Fencing token invalid","status":400,"detail":"Fencing-Token: it is no string: quote the number"}}"#
    );
    let expected = refusal("400 Bad Request", "fenced-outcome: refused\r\n", &body);
    assert_eq!(shop.ask(POST, &["fencing-token: 33"], "x").await, expected);
    for bad in [
        r#""""#,
        r#""0""#,
        r#""033""#,
        r#""-1""#,
        r#""123456789012345678901""#,
        r#""9223372036854775808""#,
        r#""33";r=7"#,
        r#""33", "34""#,
        r#""33";kid="k""#,
        "\"3\u{e4}\"",
    ] {
        let refused = shop
            .status(POST, &[&format!("fencing-token: {bad}")], "x")
            .await;
        assert_eq!(refused, is(400, "fencing-token-invalid"), "{bad}");
    }
    let twice = [r#"fencing-token: "33""#, r#"fencing-token: "33""#];
    assert_eq!(
        shop.status(POST, &twice, "x").await,
        is(400, "fencing-token-invalid")
    );
    let long = format!("fencing-token: \"33\";x=\"{}\"", "y".repeat(10_000));
    assert_eq!(
        shop.status(POST, &[&long], "x").await,
        is(400, "fencing-token-invalid")
    );
}

#[tokio::test]
async fn a_token_for_another_resource() {
    let shop = Workshop::open().await;
    let body = format!(
        r#"{{"type":"{TYPE}fencing-token-rejected","title":"Fencing token rejected","status":403,"detail":"the token is for another resource than `/locks/benches/7`"}}"#
    );
    let expected = refusal("403 Forbidden", "fenced-outcome: refused\r\n", &body);
    let token = r#"fencing-token: "33";r="/locks/benches/8""#;
    assert_eq!(shop.ask(POST, &[token], "x").await, expected);
    let claim = "PUT /.fence/%2Flocks%2Fbenches%2F7";
    assert_eq!(shop.ask(claim, &[token], "").await, expected);
}

#[tokio::test]
async fn a_claim_and_a_stale_token() {
    let shop = Workshop::open().await;
    let claim = "PUT /.fence/%2Flocks%2Fbenches%2F7";
    let claimed = shop.ask(claim, &[r#"fencing-token: "34""#], "").await;
    let expected =
        "HTTP/1.1 204 No Content\r\nfenced-outcome: claimed\r\nfencing-token: \"34\"\r\n\r\n";
    assert_eq!(claimed, expected);
    let body = format!(
        r#"{{"type":"{TYPE}stale-fencing-token","title":"Stale fencing token","status":412,"detail":"`/locks/benches/7` has seen token 34: this holder is late, and must start over under a new grant","current":"34","yours":"33"}}"#
    );
    let headers = "fenced-outcome: refused\r\nfencing-token: \"34\"\r\n";
    let expected = refusal("412 Precondition Failed", headers, &body);
    for first in [POST, "GET /benches/7", claim] {
        assert_eq!(
            shop.ask(first, &[r#"fencing-token: "33""#], "").await,
            expected
        );
    }
    assert_eq!(shop.bench.effects(), 0);
}

#[tokio::test]
async fn an_implausible_token() {
    let shop = Workshop::open().await;
    let claim = "PUT /.fence/%2Flocks%2Fbenches%2F7";
    assert_eq!(
        shop.status(claim, &[r#"fencing-token: "34""#], "").await,
        is(204, "")
    );
    let body = format!(
        r#"{{"type":"{TYPE}fencing-token-implausible","title":"Implausible fencing token","status":403,"detail":"the token is too far ahead of what `/locks/benches/7` has seen to be true","current":"34","yours":"9223372036854775807"}}"#
    );
    let headers = "fenced-outcome: refused\r\nfencing-token: \"34\"\r\n";
    let expected = refusal("403 Forbidden", headers, &body);
    let greatest = r#"fencing-token: "9223372036854775807""#;
    assert_eq!(shop.ask(POST, &[greatest], "x").await, expected);
    assert_eq!(shop.ask(claim, &[greatest], "").await, expected);
    assert_eq!(
        shop.status(POST, &[r#"fencing-token: "35""#], "x").await,
        is(200, "")
    );
}

#[tokio::test]
async fn a_claimed_fence_that_is_missing() {
    let shop = Workshop::open().await;
    let refused = shop
        .status(POST, &[r#"fencing-token: "33";claimed"#], "x")
        .await;
    assert_eq!(refused, is(409, "fence-not-claimed"));
}

#[tokio::test]
async fn a_request_is_applied_and_replayed() {
    let shop = Workshop::open().await;
    let headers = [r#"fencing-token: "33""#, r#"idempotency-key: "r1""#];
    let applied = b"HTTP/1.1 201 Created\r\nlocation: /made\r\nx-own: 1\r\nfencing-token: \"33\"\r\nfenced-outcome: applied\r\ncontent-length: 2\r\n\r\n";
    let replayed = b"HTTP/1.1 201 Created\r\nlocation: /made\r\nfenced-outcome: replayed\r\nfencing-token: \"33\"\r\ncontent-length: 2\r\n\r\n";
    for expected in [&applied[..], replayed] {
        let request = raw(POST, &headers, "create");
        let answer = exchange_bytes(shop.service.address, request).await;
        let expected = [expected, &[0xff, 0]].concat();
        assert_eq!(answer, expected, "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(shop.bench.effects(), 1);
}

#[tokio::test]
async fn one_key_for_two_requests() {
    let shop = Workshop::open().await;
    let headers = [r#"fencing-token: "33""#, r#"idempotency-key: "r1""#];
    assert_eq!(shop.status(POST, &headers, "x").await, is(200, ""));
    let mismatch = is(422, "idempotency-mismatch");
    assert_eq!(shop.status(POST, &headers, "y").await, mismatch);
    assert_eq!(shop.status("PUT /benches/7", &headers, "x").await, mismatch);
    assert_eq!(
        shop.status("POST /benches/8", &headers, "x").await,
        mismatch
    );
    assert_eq!(
        shop.status("POST /benches/7?a=1", &headers, "x").await,
        mismatch
    );
    assert_eq!(shop.bench.effects(), 1);
}

#[tokio::test]
async fn a_request_that_is_under_way() {
    let shop = Workshop::open().await;
    let headers = [r#"fencing-token: "33""#, r#"idempotency-key: "r1""#];
    let first = shop.ask(POST, &headers, "wait");
    let second = async {
        shop.bench.has_begun().await;
        let body = format!(
            r#"{{"type":"{TYPE}request-in-flight","title":"Request in flight","status":409,"detail":"the same request is under way: repeat it later with the same key"}}"#
        );
        let headers_back = "retry-after: 1\r\nfenced-outcome: refused\r\n";
        let expected = refusal("409 Conflict", headers_back, &body);
        assert_eq!(shop.ask(POST, &headers, "wait").await, expected);
        // A newer holder waits for it, but not for ever.
        let busy = shop.ask(POST, &[r#"fencing-token: "34""#], "x").await;
        assert_eq!(status(&busy), (503, "resource-busy"));
        assert!(busy.contains("\r\nretry-after: 1\r\n"), "{busy}");
        shop.bench.go_on();
    };
    let (first, ()) = tokio::join!(first, second);
    assert_eq!(status(&first), (200, ""));
    assert_eq!(shop.bench.effects(), 1);
}

#[tokio::test]
async fn a_bad_key() {
    let shop = Workshop::with(FenceServerBuilder::require_key).await;
    let token = r#"fencing-token: "33""#;
    assert_eq!(
        shop.status(POST, &[token], "x").await,
        is(400, "idempotency-key-required")
    );
    let long = "x".repeat(256);
    for bad in [
        "r1",
        "\"\"",
        "\"r1\";d=:YQ==:",
        "%\"a%0a\"",
        &format!("\"{long}\""),
    ] {
        let headers = [token, &format!("idempotency-key: {bad}")];
        let refused = shop.status(POST, &headers, "x").await;
        assert_eq!(refused, is(400, "idempotency-key-invalid"), "{bad}");
    }
    let twice = [
        token,
        r#"idempotency-key: "r1""#,
        r#"idempotency-key: "r1""#,
    ];
    assert_eq!(
        shop.status(POST, &twice, "x").await,
        is(400, "idempotency-key-invalid")
    );
}

#[tokio::test]
async fn a_bad_digest() {
    let shop = Workshop::open().await;
    let token = r#"fencing-token: "33""#;
    let of_x = "content-digest: sha-256=:LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE=:";
    assert_eq!(shop.status(POST, &[token, of_x], "x").await, is(200, ""));
    let mismatch = is(400, "content-digest-mismatch");
    assert_eq!(shop.status(POST, &[token, of_x], "y").await, mismatch);
    for bad in ["sha-256=:YQ==:", "sha-256=5", "=", ""] {
        let headers = [token, &format!("content-digest: {bad}")];
        assert_eq!(shop.status(POST, &headers, "x").await, mismatch, "{bad}");
    }
}

#[tokio::test]
async fn bodies_are_bounded() {
    let limits = |server: FenceServerBuilder<_>| {
        server
            .body_limit(10)
            .body_timeout(Duration::from_millis(100))
    };
    let shop = Workshop::with(limits).await;
    let (address, token) = (shop.service.address, r#"fencing-token: "33""#);
    assert_eq!(shop.status(POST, &[token], "0123456789").await, is(200, ""));
    let large = shop.status(POST, &[token], "0123456789a").await;
    assert_eq!(large, is(413, "content-too-large"));
    let head = format!("POST {PATH} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{token}\r\n");
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n");
    let answer = exchange(address, chunked).await;
    assert_eq!(status(&answer), (413, "content-too-large"));
    let slow = exchange(address, format!("{head}content-length: 9\r\n\r\n0123")).await;
    assert_eq!(status(&slow), (408, "content-too-slow"));
    let endless = format!("{head}transfer-encoding: chunked\r\n\r\nzz\r\n");
    let answer = exchange(address, endless).await;
    assert_eq!(status(&answer), (400, "content-broken"));
    assert_eq!(shop.bench.effects(), 1);
}

#[tokio::test]
async fn as_many_requests_as_may_be() {
    let shop = Workshop::with(|server| server.max_requests(0)).await;
    let answer = shop.ask(POST, &[r#"fencing-token: "33""#], "x").await;
    assert_eq!(status(&answer), (503, "retry"));
    assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
}

#[tokio::test]
async fn a_path_that_names_no_resource() {
    let shop = Workshop::open().await;
    let token = r#"fencing-token: "33""#;
    for path in ["/benches/%ff", "/benches/7/8", "/benches/%"] {
        let refused = shop.status(&format!("POST {path}"), &[token], "x").await;
        assert_eq!(refused, is(404, "no-such-resource"), "{path}");
    }
    for path in [
        "/.fence",
        "/.fence/",
        "/.fence/%ff",
        "/.fence/..",
        "/.fence/%0a",
    ] {
        let refused = shop.status(&format!("PUT {path}"), &[token], "").await;
        assert_eq!(refused, is(404, "no-such-resource"), "{path}");
    }
    let post = shop.ask("POST /.fence/a", &[token], "").await;
    assert_eq!(status(&post), (405, "method-not-allowed"));
    assert!(post.contains("\r\nallow: GET, PUT\r\n"), "{post}");
}

#[tokio::test]
async fn what_became_of_a_request() {
    let shop = Workshop::open().await;
    let ask = "GET /.fence";
    let of_x = r#"idempotency-key: "r1";d=:LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE=:"#;
    let sent = r#"fencing-token: "33";r="/locks/benches/7""#;
    let unknown = is(404, "request-unknown");
    assert_eq!(shop.status(ask, &[of_x], "").await, unknown);
    assert_eq!(shop.status(ask, &[of_x, sent], "").await, unknown);
    let newer = [r#"fencing-token: "34""#];
    assert_eq!(shop.status(POST, &newer, "x").await, is(200, ""));
    assert_eq!(shop.status(ask, &[of_x], "").await, unknown);
    assert_eq!(
        shop.status(ask, &[of_x, sent], "").await,
        is(404, "request-absent")
    );
    let named = [newer[0], r#"idempotency-key: "r1""#];
    assert_eq!(shop.status(POST, &named, "x").await, is(200, ""));
    let applied = "HTTP/1.1 200 OK\r\nfenced-outcome: applied\r\ncontent-length: 1\r\n\r\nx";
    assert_eq!(shop.ask(ask, &[of_x], "").await, applied);
    let other = r#"idempotency-key: "r1";d=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"#;
    assert_eq!(
        shop.status(ask, &[other], "").await,
        is(422, "idempotency-mismatch")
    );
    let required = is(400, "idempotency-key-required");
    assert_eq!(shop.status(ask, &[], "").await, required);
    assert_eq!(shop.status(ask, &[named[1]], "").await, required);
    let nameless = shop
        .status(ask, &[of_x, r#"fencing-token: "33""#], "")
        .await;
    assert_eq!(nameless, is(400, "fencing-token-invalid"));
}

#[tokio::test]
async fn reads_are_fenced_too() {
    let shop = Workshop::open().await;
    let token = [r#"fencing-token: "33""#];
    let got = shop.ask("GET /benches/7", &token, "").await;
    assert_eq!(status(&got), (200, ""));
    let head = shop.ask("HEAD /benches/7", &token, "").await;
    assert_eq!(status(&head), (200, ""));
    assert!(head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn handlers_that_do_not_succeed() {
    let limits = |server: FenceServerBuilder<_>| server.handler_timeout(Duration::from_millis(100));
    let shop = Workshop::with(limits).await;
    let token = r#"fencing-token: "33""#;
    let mut keys = (0..).map(|i| format!("idempotency-key: \"r{i}\""));
    let mut key = || keys.next().expect("a key");
    for (order, expected, outcome) in [
        ("refuse", is(409, ""), Some("refused")),
        ("fail", is(502, ""), None),
        ("lie", is(502, ""), None),
        ("panic", is(500, "outcome-unknown"), None),
        ("long", is(500, "outcome-unknown"), None),
        ("forever", is(500, "outcome-unknown"), None),
    ] {
        let key = key();
        for _ in 0..2 {
            // Nothing is kept, so that it runs again.
            let effects = shop.bench.effects();
            let answer = shop.ask(POST, &[token, &key], order).await;
            let (number, name) = status(&answer);
            assert_eq!((number, name.to_owned()), expected, "{order}");
            let told = answer.split("fenced-outcome: ").nth(1);
            let told = told.and_then(|rest| rest.split("\r\n").next());
            assert_eq!(told, outcome, "{order}: {answer}");
            assert_eq!(shop.bench.effects(), effects + 1, "{order}");
        }
    }
}

#[tokio::test]
async fn a_handler_that_keeps_the_fence() {
    let shop = Workshop::open().await;
    let headers = [r#"fencing-token: "33""#, r#"idempotency-key: "r1""#];
    assert_eq!(
        shop.status(POST, &headers, "keep").await,
        is(500, "outcome-unknown")
    );
    // It is still held, so that nobody newer is let in, and the request is still under way.
    let newer = shop.status(POST, &[r#"fencing-token: "34""#], "x").await;
    assert_eq!(newer, is(503, "resource-busy"));
    assert_eq!(shop.status(POST, &headers, "keep").await, is(503, "retry"));
    assert_eq!(shop.bench.effects(), 1);
}
