//! What the proxy sees.

use fenced_tests::{Operation, Proxy, shared};

use crate::session::{connect, fresh_node};

#[tokio::test]
async fn counts_requests_by_operation() {
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let client = connect(&proxy.address()).await;
    let path = fresh_node(&client).await;
    client.list_children(&path).await.unwrap();
    client.get_children(&path).await.unwrap();
    client.get_data(&path).await.unwrap();
    client.delete(&path, None).await.unwrap();
    assert_eq!(proxy.count(Operation::Create), 1);
    assert_eq!(proxy.count(Operation::GetChildren), 2);
    assert_eq!(proxy.count(Operation::GetData), 1);
    assert_eq!(proxy.count(Operation::Delete), 1);
    assert_eq!(proxy.count(Operation::Exists), 0);
}

#[tokio::test]
async fn tells_paths_and_watches() {
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let client = connect(&proxy.address()).await;
    let path = fresh_node(&client).await;
    client.get_data(&path).await.unwrap();
    let (_, _, _watcher) = client.get_and_watch_data(&path).await.unwrap();
    let seen = proxy.traffic();
    let about_ours = |request: &fenced_tests::Request| request.path.as_deref() == Some(&path);
    assert_eq!(seen.matching(about_ours), 3);
    assert_eq!(
        seen.matching(|request| about_ours(request) && request.watch),
        1
    );
}

#[tokio::test]
async fn forgets_requests_when_told() {
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let client = connect(&proxy.address()).await;
    fresh_node(&client).await;
    proxy.forget_requests();
    client.check_stat("/").await.unwrap();
    assert_eq!(proxy.count(Operation::Create), 0);
    assert_eq!(proxy.count(Operation::Exists), 1);
}

#[tokio::test]
async fn lets_four_letter_words_through() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let mut stream = tokio::net::TcpStream::connect(proxy.address())
        .await
        .unwrap();
    stream.write_all(b"ruok").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "imok");
}
