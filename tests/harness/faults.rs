//! What the proxy does to a session.

use std::time::{Duration, Instant};

use fenced_tests::{Fault, Operation, Proxy, Way, shared};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zookeeper_client::{Client, Error, SessionState};

use crate::session::{connect, fresh_node, lasting};

const A_WHILE: Duration = Duration::from_millis(300);

async fn session() -> (Proxy, Client) {
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let client = connect(&proxy.address()).await;
    (proxy, client)
}

/// What the server has, asked past the proxy.
async fn exists(path: &str) -> bool {
    let client = connect(&shared::zookeeper_address()).await;
    client.check_stat(path).await.unwrap().is_some()
}

#[tokio::test]
async fn a_cut_session_reconnects() {
    let (proxy, client) = session().await;
    proxy.cut().await;
    proxy.wait_for(|traffic| traffic.accepted == 2).await;
    assert!(client.check_stat("/").await.unwrap().is_some());
}

#[tokio::test]
async fn a_refusing_proxy_lets_nobody_in() {
    let (proxy, client) = session().await;
    let mut states = client.state_watcher();
    proxy.refuse().await;
    proxy.cut().await;
    assert_eq!(states.changed().await, SessionState::Disconnected);
    TcpStream::connect(proxy.address()).await.unwrap_err();
    proxy.accept().await;
    assert_eq!(states.changed().await, SessionState::SyncConnected);
}

#[tokio::test]
async fn silence_toward_the_server_holds_requests_back() {
    let (proxy, client) = session().await;
    let path = shared::fresh_root();
    proxy.silence(Way::ToServer);
    let options = lasting();
    let mut create = Box::pin(client.create(&path, b"", &options));
    timeout(A_WHILE, &mut create).await.unwrap_err();
    assert!(!exists(&path).await);
    assert_eq!(proxy.count(Operation::Create), 0);
    proxy.restore(Way::ToServer);
    create.await.unwrap();
}

#[tokio::test]
async fn silence_toward_the_client_holds_replies_back() {
    let (proxy, client) = session().await;
    let path = shared::fresh_root();
    proxy.silence(Way::ToClient);
    let options = lasting();
    let mut create = Box::pin(client.create(&path, b"", &options));
    timeout(A_WHILE, &mut create).await.unwrap_err();
    assert!(exists(&path).await);
    proxy.restore(Way::ToClient);
    create.await.unwrap();
}

#[tokio::test]
async fn delays_add_up_over_both_ways() {
    let (proxy, client) = session().await;
    let each_way = Duration::from_millis(50);
    proxy.delay(Way::ToServer, each_way);
    proxy.delay(Way::ToClient, each_way);
    let started = Instant::now();
    client.check_stat("/").await.unwrap();
    let took = started.elapsed();
    assert!(took >= 2 * each_way, "{took:?}");
}

#[tokio::test]
async fn exactly_one_reply_is_dropped() {
    let (proxy, client) = session().await;
    let path = shared::fresh_root();
    let dropped = proxy.drop_reply(Operation::Create);
    let options = lasting();
    let mut create = Box::pin(client.create(&path, b"", &options));
    dropped.happened().await;
    assert!(client.check_stat(&path).await.unwrap().is_some());
    // The client matches replies by number, so nothing but a lost connection tells it.
    timeout(A_WHILE, &mut create).await.unwrap_err();
    proxy.cut().await;
    assert_eq!(create.await.unwrap_err(), Error::ConnectionLoss);
}

#[tokio::test]
async fn other_operations_do_not_spring_the_trap() {
    let (proxy, client) = session().await;
    let path = fresh_node(&client).await;
    let dropped = proxy.drop_reply(Operation::Delete);
    client.check_stat(&path).await.unwrap();
    let delete = client.delete(&path, None);
    dropped.happened().await;
    drop(delete);
    assert!(!exists(&path).await);
}

#[tokio::test]
async fn a_cut_at_the_reply_leaves_the_effect() {
    let (proxy, client) = session().await;
    let path = shared::fresh_root();
    let cut = proxy.once(Fault::CutAtReply, |request| {
        request.operation == Operation::Create
    });
    let error = client.create(&path, b"", &lasting()).await.unwrap_err();
    assert_eq!(error, Error::ConnectionLoss);
    cut.happened().await;
    assert!(exists(&path).await);
}

#[tokio::test]
async fn a_cut_at_the_request_leaves_nothing() {
    let (proxy, client) = session().await;
    let path = shared::fresh_root();
    let ours = path.clone();
    let cut = proxy.once(Fault::CutAtRequest, move |request| {
        request.path.as_ref() == Some(&ours)
    });
    let error = client.create(&path, b"", &lasting()).await.unwrap_err();
    assert_eq!(error, Error::ConnectionLoss);
    cut.happened().await;
    assert!(!exists(&path).await);
}
