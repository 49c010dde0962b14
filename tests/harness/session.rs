//! A client's session for these tests.

use std::time::Duration;

use fenced_tests::shared;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};

/// Longer than any fault here lasts.
const SESSION_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) async fn connect(address: &str) -> Client {
    let connector = Client::connector().with_session_timeout(SESSION_TIMEOUT);
    connector
        .connect(address)
        .await
        .expect("the server accepts sessions")
}

pub(crate) fn lasting() -> CreateOptions<'static> {
    CreateMode::Persistent.with_acls(Acls::anyone_all())
}

/// Creates a node that no other test has.
pub(crate) async fn fresh_node(client: &Client) -> String {
    let path = shared::fresh_root();
    client
        .create(&path, b"", &lasting())
        .await
        .expect("the path is free");
    path
}
