//! Many processes, one lock, real servers: judged by what the resource itself has recorded.

use std::path::PathBuf;
use std::process::{Child, Command};

use fenced_tests::shared;
use tokio_postgres::{Client, NoTls};
use zookeeper_client as zk;

const PROCESSES: usize = 8;
const SECTIONS: usize = 200;

/// The process is an example, and built beside the tests.
fn seller() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let built = test.ancestors().nth(2).expect("the folder of the build");
    built.join("examples/seller")
}

fn start(zk: &str, postgres: &str, sku: &str) -> Child {
    Command::new(seller())
        .args([zk, postgres, sku, &SECTIONS.to_string()])
        .spawn()
        .expect("`seller` is built: cargo build --all-features -p fenced-tests --examples")
}

async fn shop(postgres: &str, sku: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(postgres, NoTls)
        .await
        .expect("a connection");
    tokio::spawn(connection);
    fenced::postgres::migrate(&client)
        .await
        .expect("the schema");
    let tables = "
        CREATE TABLE stock (sku TEXT PRIMARY KEY, count BIGINT NOT NULL);
        CREATE TABLE journal (
            id BIGINT GENERATED ALWAYS AS IDENTITY, sku TEXT, token BIGINT, step TEXT
        );";
    client.batch_execute(tables).await.expect("tables");
    let all = i64::try_from(PROCESSES * SECTIONS).expect("a number");
    client
        .execute("INSERT INTO stock VALUES ($1, $2)", &[&sku, &all])
        .await
        .expect("a stock");
    client
}

#[tokio::test]
async fn eight_processes_never_overlap_and_lose_nothing() {
    let (zk, postgres) = (shared::zookeeper_address(), shared::fresh_database().await);
    let sku = shared::fresh_name("sku");
    let database = shop(&postgres, &sku).await;

    let sellers: Vec<Child> = (0..PROCESSES)
        .map(|_| start(&zk, &postgres, &sku))
        .collect();
    for mut seller in sellers {
        let ended = seller.wait().expect("a process that can be awaited");
        assert!(ended.success(), "a seller ended with {ended}");
    }

    let journal = "SELECT token, step FROM journal WHERE sku = $1 ORDER BY id";
    let journal = database.query(journal, &[&sku]).await.expect("the journal");
    assert_eq!(journal.len(), 2 * PROCESSES * SECTIONS);
    let mut last = 0;
    for section in journal.chunks(2) {
        let [enter, exit] = section else {
            panic!("half a section")
        };
        let step = |row: &tokio_postgres::Row| (row.get::<_, i64>(0), row.get::<_, String>(1));
        let ((entered, first), (left, second)) = (step(enter), step(exit));
        assert_eq!((first.as_str(), second.as_str()), ("enter", "exit"));
        assert_eq!(entered, left, "two sections overlap");
        assert!(entered > last, "token {entered} came after {last}");
        last = entered;
    }

    let count = "SELECT count FROM stock WHERE sku = $1";
    let count: i64 = database
        .query_one(count, &[&sku])
        .await
        .expect("the stock")
        .get(0);
    assert_eq!(count, 0, "updates were lost");

    let client = zk::Client::connect(&zk).await.expect("a connection");
    let nodes = client
        .list_children(&format!("/locks/sections/{sku}"))
        .await;
    assert!(
        matches!(&nodes, Ok(nodes) if nodes.is_empty()) || matches!(nodes, Err(zk::Error::NoNode)),
        "{nodes:?}"
    );
}
