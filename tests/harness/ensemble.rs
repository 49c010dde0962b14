//! Several ZooKeeper servers, and the network between them.

use std::time::Duration;

use fenced_tests::Ensemble;
use tokio::time::sleep;

use crate::session::{connect, fresh_node};

const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

async fn leader_other_than(ensemble: &Ensemble, old: usize) -> usize {
    loop {
        match ensemble.leader() {
            Some(new) if new != old => return new,
            _ => sleep(BETWEEN_LOOKS).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "soak: elections take their time"]
async fn survives_its_leader() {
    let mut ensemble = Ensemble::start(3).unwrap();
    let client = connect(&ensemble.addresses()).await;
    let path = fresh_node(&client).await;
    let old = ensemble.leader().unwrap();
    ensemble.server_mut(old).stop().unwrap();
    leader_other_than(&ensemble, old).await;
    let client = connect(&ensemble.addresses()).await;
    assert!(client.check_stat(&path).await.unwrap().is_some());
    ensemble.server_mut(old).restart().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "soak: elections take their time"]
async fn a_leader_that_is_cut_off_is_replaced_and_rejoins() {
    let ensemble = Ensemble::start(3).unwrap();
    let old = ensemble.leader().unwrap();
    ensemble.cut_off(old);
    let new = leader_other_than(&ensemble, old).await;
    let path = fresh_node(&connect(&ensemble.server(new).address()).await).await;
    ensemble.rejoin(old);
    let rejoined = connect(&ensemble.server(old).address()).await;
    rejoined.sync("/").await.unwrap();
    assert!(rejoined.check_stat(&path).await.unwrap().is_some());
}
