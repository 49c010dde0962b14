//! Servers that do not keep to the rules: what stands between us and ours may answer anything.

use std::time::Duration;

use fenced::http::{HttpRefusal, HttpSink, HttpWrite, client_builder};
use fenced::{FencingSink, SinkError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::workshop::{fence, order, request};

/// Answers every request with these bytes, and closes the connection.
async fn stranger(answer: Vec<u8>) -> HttpSink {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = [0; 4_096];
            let _ = client.read(&mut request).await;
            let _ = client.write_all(&answer).await;
            let _ = client.shutdown().await;
        }
    });
    let client = client_builder().build().expect("a client");
    let sink = HttpSink::new(client, &format!("http://{address}")).expect("a sink");
    sink.timeout(Duration::from_millis(500)).answer_limit(1_000)
}

fn answer(line: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {line}\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

fn problem(line: &str, body: &str) -> Vec<u8> {
    answer(line, "content-type: application/problem+json\r\n", body)
}

async fn write(bytes: Vec<u8>) -> SinkError {
    let sink = stranger(bytes).await;
    let written = sink.write(&fence(33), &request("r1"), order("x")).await;
    written.expect_err("an error")
}

fn behind(error: &SinkError) -> &HttpRefusal {
    let (SinkError::Backend(cause) | SinkError::Retry(cause)) = error else {
        panic!("{error:?}");
    };
    cause.downcast_ref().unwrap_or_else(|| panic!("{error:?}"))
}

#[tokio::test]
async fn what_may_have_been_applied_is_ambiguous() {
    let stale =
        r#"{"type":"https://github.com/fenced-rs/fenced#stale-fencing-token","current":"34"}"#;
    for bytes in [
        vec![],
        b"HTTP/1.1 2".to_vec(),
        b"HTTP/1.1 200 OK\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\nfenced-outcome: applied\r\ncontent-length: 5\r\n\r\nab".to_vec(),
        b"HTTP/1.1 200 OK\r\nfenced-outcome: applied\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"
            .to_vec(),
        b"\0\0\0".to_vec(),
        answer("502 Bad Gateway", "", "a proxy"),
        answer("504 Gateway Timeout", "", "a proxy"),
        answer("500 Internal Server Error", "", ""),
        problem("500 Internal Server Error", stale),
        problem(
            "500 Internal Server Error",
            r#"{"type":"https://github.com/fenced-rs/fenced#outcome-unknown"}"#,
        ),
    ] {
        let error = write(bytes.clone()).await;
        let shown = String::from_utf8_lossy(&bytes);
        assert!(
            matches!(error, SinkError::Ambiguous { .. }),
            "{shown}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_silent_server_is_ambiguous() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = client_builder().build().expect("a client");
    let sink = HttpSink::new(client, &format!("http://{address}")).expect("a sink");
    let sink = sink.timeout(Duration::from_millis(100));
    let error = sink.write(&fence(33), &request("r1"), order("x")).await;
    assert!(
        matches!(error, Err(SinkError::Ambiguous { .. })),
        "{error:?}"
    );
    let error = sink.claim(&fence(33)).await;
    assert!(matches!(error, Err(SinkError::Retry(_))), "{error:?}");
    let error = sink.outcome(&request("r1")).await;
    assert!(matches!(error, Err(SinkError::Retry(_))), "{error:?}");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_got_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let client = client_builder().build().expect("a client");
    let sink = HttpSink::new(client, &format!("http://user:secret@{address}")).expect("a sink");
    let error = sink.write(&fence(33), &request("r1"), order("x")).await;
    let error = error.expect_err("an error");
    assert!(matches!(error, SinkError::Retry(_)), "{error:?}");
    let shown = format!("{error} {error:?} {sink:?}");
    assert!(!shown.contains("secret"), "{shown}");
}

#[tokio::test]
async fn a_status_alone_says_nothing_about_the_fence() {
    let stale =
        r#"{"type":"https://github.com/fenced-rs/fenced#stale-fencing-token","current":"34"}"#;
    let others = r#"{"type":"https://example.org#stale-fencing-token","current":"34"}"#;
    let older =
        r#"{"type":"https://github.com/fenced-rs/fenced#stale-fencing-token","current":"33"}"#;
    let absurd =
        r#"{"type":"https://github.com/fenced-rs/fenced#stale-fencing-token","current":34}"#;
    for bytes in [
        answer("412 Precondition Failed", "", "a proxy"),
        answer(
            "412 Precondition Failed",
            "content-type: application/json\r\n",
            stale,
        ),
        problem("412 Precondition Failed", others),
        problem("412 Precondition Failed", older),
        problem("412 Precondition Failed", absurd),
        problem("409 Conflict", stale),
        answer("404 Not Found", "", ""),
        answer("307 Temporary Redirect", "location: /elsewhere\r\n", ""),
    ] {
        let error = write(bytes.clone()).await;
        let shown = String::from_utf8_lossy(&bytes);
        assert!(matches!(error, SinkError::Backend(_)), "{shown}: {error:?}");
        behind(&error);
    }
    let error = write(problem("412 Precondition Failed", stale)).await;
    assert!(matches!(error, SinkError::Stale { .. }), "{error:?}");
}

#[tokio::test]
async fn an_answer_without_a_word_on_the_fence_is_told() {
    let error = write(answer("200 OK", "", "done")).await;
    assert!(matches!(error, SinkError::Backend(_)), "{error:?}");
    assert!(
        error.to_string().contains("give the route the layer"),
        "{error}"
    );
    let sink = stranger(answer("200 OK", "", "")).await;
    let error = sink.claim(&fence(33)).await.expect_err("an error");
    assert!(
        error.to_string().contains("no layer of the fence"),
        "{error}"
    );
}

#[tokio::test]
async fn what_asks_to_come_back_is_retried() {
    let later = "retry-after: 7\r\n";
    let error = write(answer("429 Too Many Requests", later, "")).await;
    assert!(error.is_retryable(), "{error:?}");
    assert_eq!(behind(&error).retry_after, Some(Duration::from_secs(7)));
    let sink = stranger(answer("503 Service Unavailable", later, "")).await;
    let error = sink.claim(&fence(33)).await.expect_err("an error");
    assert!(error.is_retryable(), "{error:?}");
}

#[tokio::test]
async fn answers_are_bounded() {
    let long = "x".repeat(1_001);
    for bytes in [
        answer("200 OK", "fenced-outcome: applied\r\n", &long),
        [
            b"HTTP/1.1 200 OK\r\nfenced-outcome: applied\r\n\r\n",
            long.as_bytes(),
        ]
        .concat(),
    ] {
        let error = write(bytes).await;
        assert!(
            error.to_string().contains("more than the 1000 bytes"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_refusal_of_the_handler_is_behind_the_error() {
    let refused = answer("409 Conflict", "fenced-outcome: refused\r\n", "sold out");
    let error = write(refused).await;
    let refusal = behind(&error);
    assert_eq!((refusal.status.as_u16(), refusal.kind), (409, None));
    assert_eq!(refusal.body, "sold out");
}

#[tokio::test]
async fn a_detail_cannot_fill_the_log() {
    let detail = format!("\\u001b[2J{}", "x".repeat(600));
    let kind = "https://github.com/fenced-rs/fenced#fencing-token-rejected";
    let body = format!(r#"{{"type":"{kind}","detail":"{detail}"}}"#);
    let error = write(problem("403 Forbidden", &body)).await;
    let shown = error.to_string();
    assert!(shown.len() < 700 && !shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_base_that_is_no_url_is_told() {
    let client = client_builder().build().expect("a client");
    for bad in [
        "",
        "gateway",
        "ftp://gateway",
        "http://",
        "http://x?y",
        "http://x#y",
    ] {
        assert!(HttpSink::new(client.clone(), bad).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_sent_is_not_sent() {
    let sink = stranger(answer("200 OK", "fenced-outcome: applied\r\n", "")).await;
    for path in ["", "benches/7", "@elsewhere/7"] {
        let written = sink
            .write(&fence(33), &request("r1"), HttpWrite::post(path))
            .await;
        assert!(
            matches!(written, Err(SinkError::Backend(_))),
            "{path}: {written:?}"
        );
    }
    for resource in ["", "..", "a\nb"] {
        let nowhere = fenced::Fence::new(resource, fence(33).token);
        let error = sink.claim(&nowhere).await.expect_err("an error");
        assert!(matches!(error, SinkError::Backend(_)), "{resource:?}");
    }
}
