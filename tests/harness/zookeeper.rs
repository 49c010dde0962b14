//! The life of a ZooKeeper server.

use std::io;
use std::time::Duration;

use fenced_tests::ZooKeeper;
use tokio::time::timeout;

use crate::session::{connect, fresh_node};

#[tokio::test(flavor = "multi_thread")]
async fn keeps_its_data_over_a_restart() {
    let mut server = ZooKeeper::start().unwrap();
    let path = fresh_node(&connect(&server.address()).await).await;
    server.restart().unwrap();
    let stat = connect(&server.address())
        .await
        .check_stat(&path)
        .await
        .unwrap();
    assert!(stat.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn is_empty_once_wiped() {
    let mut server = ZooKeeper::start().unwrap();
    let path = fresh_node(&connect(&server.address()).await).await;
    server.wipe().unwrap();
    server.restart().unwrap();
    let stat = connect(&server.address())
        .await
        .check_stat(&path)
        .await
        .unwrap();
    assert!(stat.is_none());
}

#[test]
fn does_not_answer_while_stopped() {
    let mut server = ZooKeeper::start().unwrap();
    server.stop().unwrap();
    let error = server.four_letter("ruok").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_what_it_was_asked_while_paused() {
    let server = ZooKeeper::start().unwrap();
    let client = connect(&server.address()).await;
    server.pause().unwrap();
    let mut answer = Box::pin(client.check_stat("/"));
    timeout(Duration::from_millis(200), &mut answer)
        .await
        .unwrap_err();
    server.resume().unwrap();
    assert!(answer.await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_short_sessions() {
    let server = ZooKeeper::start().unwrap();
    let second = Duration::from_secs(1);
    let connector = zookeeper_client::Client::connector().with_session_timeout(second);
    let client = connector.connect(&server.address()).await.unwrap();
    assert_eq!(client.session_timeout(), second);
}

#[test]
fn takes_settings() {
    let tick = Duration::from_millis(300);
    let server = ZooKeeper::options()
        .tick(tick)
        .setting("maxSessionTimeout", "9000")
        .start();
    let answer = server.unwrap().four_letter("conf").unwrap();
    assert!(answer.contains("tickTime=300\n"), "{answer}");
    assert!(answer.contains("maxSessionTimeout=9000\n"), "{answer}");
}
