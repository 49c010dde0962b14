//! Answers that get lost, and clients that go away.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fenced::http::{HttpSink, client_builder};
use fenced::{Fate, FencingSink, Outcome, SinkError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::wire::raw;
use crate::workshop::{PATH, Workshop, fence, order, request};

/// Passes connections on, and cuts each of them after so many bytes of one direction.
struct Cutter {
    sink: HttpSink,
    requests: Arc<AtomicUsize>,
    answers: Arc<AtomicUsize>,
}

impl Cutter {
    async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(AtomicUsize::new(usize::MAX));
        let answers = Arc::new(AtomicUsize::new(usize::MAX));
        let (there, back) = (Arc::clone(&requests), Arc::clone(&answers));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server).await.expect("a server");
                let limits = (there.load(Ordering::SeqCst), back.load(Ordering::SeqCst));
                tokio::spawn(relay(client, server, limits));
            }
        });
        // Each request has a connection of its own.
        let client = client_builder().pool_max_idle_per_host(0);
        let client = client.build().expect("a client");
        Self {
            sink: HttpSink::new(client, &format!("http://{address}")).expect("a sink"),
            requests,
            answers,
        }
    }
}

/// Ends both connections as soon as one direction is at its limit.
async fn relay(mut client: TcpStream, mut server: TcpStream, limits: (usize, usize)) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    tokio::select! {
        () = copy(&mut from_client, &mut to_server, limits.0) => {}
        () = copy(&mut from_server, &mut to_client, limits.1) => {}
    }
}

async fn copy(
    from: &mut (impl tokio::io::AsyncRead + Unpin),
    to: &mut (impl tokio::io::AsyncWrite + Unpin),
    mut left: usize,
) {
    let mut buffer = [0; 4_096];
    while left > 0 {
        let Ok(read @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        let passed = read.min(left);
        if to.write_all(&buffer[..passed]).await.is_err() {
            return;
        }
        left -= passed;
    }
}

#[tokio::test]
async fn a_dropped_answer_is_ambiguous_and_its_outcome_is_told() {
    let shop = Workshop::open().await;
    let cutter = Cutter::before(shop.service.address).await;
    let sent = request("r1").sent_under(fence(33));
    cutter.answers.store(1, Ordering::SeqCst);
    let lost = cutter.sink.write(&fence(33), &sent, order("done")).await;
    assert!(
        matches!(&lost, Err(SinkError::Ambiguous { request: Some(id) }) if id == "r1"),
        "{lost:?}"
    );
    cutter.answers.store(usize::MAX, Ordering::SeqCst);
    cutter.sink.claim(&fence(34)).await.expect("a claim");
    let fate = cutter.sink.outcome(&sent).await.expect("a fate");
    let Fate::Applied(answer) = fate else {
        panic!("{fate:?}")
    };
    assert_eq!(answer.body, "done");
    let again = cutter.sink.write(&fence(34), &sent, order("done")).await;
    assert_eq!(again.expect("an answer"), Outcome::Replayed(answer));
    assert_eq!(shop.bench.effects(), 1);
}

#[tokio::test]
async fn a_connection_cut_at_each_step_leaves_no_doubt_once_a_newer_holder_has_claimed() {
    let shop = Workshop::open().await;
    let cutter = Cutter::before(shop.service.address).await;
    let (mut applied, mut absent, mut token) = (0, 0, 1);
    for (way, limits) in [
        (&cutter.requests, (0..500).step_by(23)),
        (&cutter.answers, (0..190).step_by(11)),
    ] {
        for limit in limits {
            way.store(limit, Ordering::SeqCst);
            let sent = request(&format!("r{token}")).sent_under(fence(token));
            let written = cutter.sink.write(&fence(token), &sent, order("done")).await;
            if let Err(error) = &written {
                assert!(matches!(error, SinkError::Ambiguous { .. }), "{error}");
            }
            let newer = fence(token + 1);
            shop.service.sink.claim(&newer).await.expect("a claim");
            match shop.service.sink.outcome(&sent).await.expect("a fate") {
                Fate::Applied(_) => applied += 1,
                Fate::Absent => {
                    assert!(written.is_err(), "an answer to what was not applied");
                    absent += 1;
                }
                Fate::Unknown => panic!("unknown although a newer holder has claimed"),
            }
            assert_eq!(shop.bench.effects(), applied);
            token += 2;
        }
        way.store(usize::MAX, Ordering::SeqCst);
    }
    assert!(
        applied >= 10 && absent >= 10,
        "{applied} applied, {absent} absent"
    );
}

#[tokio::test]
async fn a_handler_goes_on_when_its_client_has_gone() {
    let shop = Workshop::open().await;
    let sent = request("r1").sent_under(fence(33));
    let older = fence(33);
    let writing = shop.service.sink.write(&older, &sent, order("wait"));
    tokio::select! {
        _ = writing => panic!("an answer from a handler that waits"),
        () = shop.bench.has_begun() => {}
    }
    // The connection is closed by now; the fence is held all the same.
    let newer = shop.service.sink.claim(&fence(34)).await;
    assert!(matches!(newer, Err(SinkError::Busy { .. })), "{newer:?}");
    shop.bench.go_on();
    while let Err(error) = shop.service.sink.claim(&fence(34)).await {
        assert!(error.is_retryable(), "{error}");
    }
    let fate = shop.service.sink.outcome(&sent).await.expect("a fate");
    assert!(
        matches!(&fate, Fate::Applied(answer) if answer.body == "waited"),
        "{fate:?}"
    );
    assert_eq!(shop.bench.effects(), 1);
}

#[tokio::test]
async fn a_client_that_goes_before_its_body_is_whole_changes_nothing() {
    let shop = Workshop::open().await;
    let whole = raw("POST /benches/7", &[r#"fencing-token: "33""#], "done");
    for length in [10, whole.len() - 10, whole.len() - 1] {
        let mut connection = TcpStream::connect(shop.service.address)
            .await
            .expect("a connection");
        let part = &whole.as_bytes()[..length];
        connection.write_all(part).await.expect("a part");
        connection.shutdown().await.expect("an end");
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer).await;
    }
    assert_eq!(shop.bench.effects(), 0);
    shop.service
        .sink
        .claim(&fence(1))
        .await
        .expect("nobody has raised the fence");
    assert!(whole.contains(PATH));
}
