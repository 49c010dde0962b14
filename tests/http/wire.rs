//! Requests and answers, byte for byte.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A request, with the length of its body, that closes the connection.
pub(crate) fn raw(first: &str, headers: &[&str], body: &str) -> String {
    let (first, length) = (format!("{first} HTTP/1.1"), body.len().to_string());
    let length = format!("content-length: {length}");
    let own = [first.as_str(), "host: x", "connection: close", &length];
    let head = [&own, headers].concat().join("\r\n");
    format!("{head}\r\n\r\n{body}")
}

/// Sends it, and reads until the server closes; the answer without its date.
pub(crate) async fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let answer = exchange_bytes(address, request).await;
    String::from_utf8(answer).expect("text")
}

/// The status line's number, and the name of the problem if it is one.
pub(crate) fn status(answer: &str) -> (u16, &str) {
    let status = answer.get(9..12).and_then(|status| status.parse().ok());
    let problem = answer.split_once("fenced#").map_or("", |(_, rest)| rest);
    let name = problem.split('"').next().unwrap_or_default();
    (
        status.unwrap_or_else(|| panic!("no answer: {answer:?}")),
        name,
    )
}

/// A refusal, as it must be on the wire.
pub(crate) fn refusal(line: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {line}\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
}

/// As [`exchange`], for an answer that is no text.
pub(crate) async fn exchange_bytes(address: SocketAddr, request: impl AsRef<[u8]>) -> Vec<u8> {
    let mut connection = TcpStream::connect(address).await.expect("a connection");
    let sent = connection.write_all(request.as_ref()).await;
    sent.expect("a request");
    let mut answer = Vec::new();
    // A server that refuses early resets the connection below what it did not read.
    let _ = connection.read_to_end(&mut answer).await;
    let lines = answer.split_inclusive(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.starts_with(b"date: ") && !line.starts_with(b"connection: "))
        .flatten()
        .copied()
        .collect()
}
