//! The ZooKeeper lock beside bare requests of the same client, and beside Curator's mutex, on a
//! server that syncs its log: on loopback, and with 5 ms more each way.
//!
//! `tests/run bench -- --bench zookeeper`

mod bare;
#[path = "../../peers/fenced.rs"]
mod contender;
mod crowd;
mod race;

use std::time::Duration;

use fenced_tests::{Proxy, Way, ZooKeeper};

use crowd::Crowd;
use race::Race;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    if std::env::args().any(|argument| argument == crowd::CONTENDER) {
        return contender::main();
    }
    let server = ZooKeeper::options().fsync(true).start()?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        println!("\nnear\n");
        near(&server.address()).await?;
        println!("\nwith 5 ms more each way\n");
        far(&server.address()).await
    })
}

async fn near(address: &str) -> Result<(), Failure> {
    bare::near(address).await?;
    let mut crowd = Crowd::start(address, 8).await?;
    crowd.warm_up().await;
    let cycle = Race::new("acquire + release", 1.25).times(300);
    cycle.run(&mut crowd).await;
    let processes = Race::new("hand-offs, 8 processes", 1.5).processes(8);
    processes.times(100).run(&mut crowd).await;
    let sessions = Race::new("hand-offs, 8 sessions of a process", 1.3).sessions(8);
    sessions.times(100).run(&mut crowd).await;
    let tasks = Race::new("hand-offs, 8 tasks of a session", 2.0).tasks(8);
    tasks.times(200).run(&mut crowd).await;
    Ok(())
}

async fn far(address: &str) -> Result<(), Failure> {
    let proxy = Proxy::start(address)?;
    let mut crowd = Crowd::start(&proxy.address(), 1).await?;
    crowd.warm_up().await;
    for way in [Way::ToServer, Way::ToClient] {
        proxy.delay(way, Duration::from_millis(5));
    }
    bare::far(&proxy.address()).await?;
    let cycle = Race::new("acquire + release", 1.45).times(40);
    cycle.run(&mut crowd).await;
    let two = Race::new("hand-offs, 2 sessions of a process", 1.2).sessions(2);
    two.times(20).run(&mut crowd).await;
    let eight = Race::new("hand-offs, 8 sessions of a process", 1.0).sessions(8);
    eight.times(8).run(&mut crowd).await;
    Ok(())
}
