//! The life of a PostgreSQL server.

use fenced_tests::{Postgres, Proxy, shared};
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    // It ends with its client, or with the server.
    tokio::spawn(connection);
    client
}

async fn answer(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap().get(0)
}

async fn write_row(url: &str) {
    let client = connect(url).await;
    client
        .batch_execute("CREATE TABLE t AS SELECT 1::bigint AS n")
        .await
        .unwrap();
}

#[tokio::test]
async fn fresh_databases_are_apart() {
    let (one, other) = (
        shared::fresh_database().await,
        shared::fresh_database().await,
    );
    write_row(&one).await;
    write_row(&other).await;
    assert_eq!(
        answer(&connect(&one).await, "SELECT count(*) FROM t").await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_its_data_over_a_restart() {
    let mut server = Postgres::start().unwrap();
    write_row(&server.url()).await;
    server.restart().unwrap();
    assert_eq!(
        answer(&connect(&server.url()).await, "SELECT n FROM t").await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_again_after_it_was_killed() {
    let mut server = Postgres::start().unwrap();
    write_row(&server.url()).await;
    let _open = connect(&server.url()).await;
    server.kill().unwrap();
    server.restart().unwrap();
    assert_eq!(
        answer(&connect(&server.url()).await, "SELECT n FROM t").await,
        1
    );
}

#[tokio::test]
async fn can_be_cut_off() {
    let url = shared::fresh_database().await;
    let address = shared::address_in(&url);
    let proxy = Proxy::start(address).unwrap();
    let client = connect(&url.replacen(address, &proxy.address(), 1)).await;
    assert_eq!(answer(&client, "SELECT 1::bigint").await, 1);
    proxy.cut().await;
    assert!(
        client
            .query_one("SELECT 1", &[])
            .await
            .unwrap_err()
            .is_closed()
    );
}
