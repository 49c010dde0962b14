//! Holders and waiters that are processes, stopped and killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fenced_tests::{Proxy, shared};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;

use crate::setup::{Ground, acquire, path, soon};

const TIMEOUT: Duration = Duration::from_secs(2);

/// The process `holder`, killed when dropped.
struct Holder {
    child: Child,
    lines: mpsc::UnboundedReceiver<String>,
}

impl Holder {
    fn start(ground: &Ground, address: &str, path: &str) -> Self {
        let test = std::env::current_exe().unwrap();
        let built = test.ancestors().nth(2).unwrap();
        let mut child = Command::new(built.join("examples/holder"))
            .args([
                address,
                &ground.root,
                path,
                &TIMEOUT.as_millis().to_string(),
            ])
            .stdout(Stdio::piped())
            .spawn()
            .expect("`holder` is built: cargo build --all-features -p fenced-tests --examples");
        let (sender, lines) = mpsc::unbounded_channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test may have ended.
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// What comes behind the next line that begins with `word`; all lines before are passed over.
    async fn says(&mut self, word: &str) -> String {
        soon(word, async {
            loop {
                let line = self.lines.recv().await.expect("the holder lives");
                if let Some(rest) = line.strip_prefix(word) {
                    return rest.trim().to_owned();
                }
            }
        })
        .await
    }

    async fn token(&mut self, word: &str) -> i64 {
        self.says(word).await.parse().unwrap()
    }

    /// Everything said so far that nobody has read.
    fn said(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.lines.try_recv().ok()).collect()
    }

    /// The processor time used so far, in ticks of 10 ms.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        [11, 12]
            .map(|at| fields[at].parse::<u64>().unwrap())
            .iter()
            .sum()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_stopped_holder_writes_nothing_that_counts() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("stopped"));
    let mut holder = Holder::start(&ground, &ground.server, path.as_str());
    let stale = holder.token("held").await;
    holder.token("write").await;
    holder.signal(Signal::STOP);
    let next = acquire(&locks, &path).await;
    assert!(next.token().get() > stale);
    // Sent before the next holder's claim.
    drop(holder.said());
    holder.signal(Signal::CONT);
    assert_eq!(holder.says("lost").await, "DeadlinePassed");
    // At most what was under way when it was stopped, which a resource refuses.
    let late = holder.said();
    assert!(
        !late.iter().any(|line| line.starts_with("write")),
        "{late:?}"
    );
    let token = next.token().get();
    next.release().await.unwrap();
    assert!(holder.token("held").await > token);
}

#[tokio::test]
async fn a_stopped_waiter_holds_nobody_up_and_waits_on() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("stopped-waiter"));
    let held = acquire(&locks, &path).await;
    let mut waiter = Holder::start(&ground, &ground.server, path.as_str());
    waiter.says("waiting").await;
    ground.queue_of(&path, 2).await;
    waiter.signal(Signal::STOP);
    ground.queue_of(&path, 1).await;
    held.release().await.unwrap();
    let next = acquire(&locks, &path).await;
    waiter.signal(Signal::CONT);
    ground.queue_of(&path, 2).await;
    let token = next.token().get();
    next.release().await.unwrap();
    assert!(waiter.token("held").await > token);
}

#[tokio::test]
async fn a_killed_holder_is_followed_when_its_session_ends() {
    let ground = Ground::shared().await;
    let (locks, path) = (ground.locks().await, path("killed"));
    let mut holder = Holder::start(&ground, &ground.server, path.as_str());
    let token = holder.token("held").await;
    holder.signal(Signal::KILL);
    let killed = Instant::now();
    let next = acquire(&locks, &path).await;
    assert!(next.token().get() > token);
    assert!(killed.elapsed() < TIMEOUT * 3, "{:?}", killed.elapsed());
    next.release().await.unwrap();
    ground.queue_of(&path, 0).await;
}

/// One of the addresses has no route: the client library then tries again without a pause.
#[tokio::test]
#[ignore = "soak: looks on for ten seconds"]
async fn a_network_without_a_route_costs_no_core() {
    let ground = Ground::shared().await;
    let proxy = Proxy::zookeeper(shared::zookeeper_address()).unwrap();
    let path = path("idle");
    let address = format!("{},[2001:db8::1]:2181", proxy.address());
    let mut holder = Holder::start(&ground, &address, path.as_str());
    holder.token("held").await;
    proxy.refuse().await;
    proxy.cut().await;
    let (cut, before) = (Instant::now(), holder.ticks());
    assert_eq!(holder.says("lost").await, "DeadlinePassed");
    let lost = cut.elapsed();
    assert!(
        lost < TIMEOUT + Duration::from_secs(1),
        "told after {lost:?}"
    );
    let looked_on = Duration::from_secs(10);
    tokio::time::sleep(looked_on.saturating_sub(lost)).await;
    let used = Duration::from_millis(10 * (holder.ticks() - before));
    println!("lost after {lost:?}, {used:?} of processor time in {looked_on:?}");
    assert!(used < looked_on / 20, "{used:?}");
    proxy.accept().await;
    holder.token("held").await;
}
