//! A fenced write to Redis beside a plain SET, without pipelining: what one caller has to wait, and
//! what a server gets done for many.
//!
//! `cargo bench -p fenced-tests --bench redis`, with a server in `FENCED_REDIS` or one of its own.

use std::env;
use std::future::Future;
use std::hint::black_box;

use fenced::MemoryLocks;
use fenced::prelude::*;
use fenced_tests::{Redis, Times, shared};
use futures::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};

const ROUNDS: u32 = 30;
const WRITES: u32 = 2_000;
const CALLERS: usize = 16;

fn main() {
    let own = env::var_os(shared::REDIS)
        .is_none()
        .then(|| Redis::start().expect("a server"));
    let url = own.as_ref().map_or_else(shared::redis_url, Redis::url);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    for callers in [1, CALLERS] {
        println!("{callers} at a time");
        runtime.block_on(compare(&url, callers));
    }
}

async fn compare(url: &str, callers: usize) {
    let mut crowd = Vec::new();
    for number in 0..callers {
        crowd.push(Caller::new(url, number).await);
    }
    let mut times = Times::default();
    for round in 0..ROUNDS {
        let each = WRITES / u32::try_from(callers).expect("a few");
        let operations = each * u32::try_from(callers).expect("a few");
        let plain = all(&crowd, |caller| caller.plain(each));
        times.take("plain SET", operations, plain).await;
        let fenced = all(&crowd, |caller| caller.fenced(each));
        times.take("fenced", operations, fenced).await;
        let named = all(&crowd, |caller| caller.named(round, each));
        times
            .take("fenced, with its request", operations, named)
            .await;
        let counted = all(&crowd, |caller| caller.plain_incr(each));
        times.take("plain INCRBY", operations, counted).await;
        let counted = all(&crowd, |caller| caller.fenced_incr(each));
        times.take("fenced incr", operations, counted).await;
    }
    times.compare("fenced", "plain SET", 0.85);
    times.compare("fenced, with its request", "plain SET", 0.62);
    times.compare("fenced incr", "plain INCRBY", 0.75);
}

async fn all<'c, F: Future>(crowd: &'c [Caller], work: impl Fn(&'c Caller) -> F) {
    join_all(crowd.iter().map(work)).await;
}

/// Somebody with a connection and a lock of their own.
struct Caller {
    connection: MultiplexedConnection,
    locks: MemoryLocks,
    sink: RedisSink,
    path: String,
    name: String,
}

impl Caller {
    async fn new(url: &str, number: usize) -> Self {
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let client = Client::open(url).expect("a URL");
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        let connection = connection.await.expect("a connection");
        let name = shared::fresh_name("bench");
        Self {
            sink: RedisSink::new(connection.clone()).tag(&name),
            connection,
            locks: MemoryLocks::new(),
            path: format!("/locks/inventory/{number}"),
            name,
        }
    }

    fn key(&self) -> String {
        format!("{{{}}}:count", self.name)
    }

    async fn plain(&self, writes: u32) {
        let key = self.key();
        for number in 0..writes {
            let mut command = redis::cmd("SET");
            command.arg(&key).arg(number);
            let mut connection = self.connection.clone();
            command.exec_async(&mut connection).await.expect("a write");
        }
    }

    async fn plain_incr(&self, writes: u32) {
        let key = self.key();
        for _ in 0..writes {
            let mut command = redis::cmd("INCRBY");
            command.arg(&key).arg(1);
            let sum: i64 = command
                .query_async(&mut self.connection.clone())
                .await
                .expect("a sum");
            black_box(sum);
        }
    }

    async fn section<F>(&self, body: F)
    where
        F: for<'s> AsyncFnOnce(FencedGuard<'s>),
    {
        let held = section(&self.locks, &*self.path).run(body);
        held.await.expect("a lock");
    }

    async fn fenced(&self, writes: u32) {
        let key = self.key();
        self.section(async |guard| {
            let stock = guard.fence(&self.sink);
            for number in 0..writes {
                let write = RedisBatch::new().set(&*key, number.to_string());
                let [set]: [i64; 1] = stock.apply(write).await.expect("a write");
                black_box(set);
            }
        })
        .await;
    }

    async fn named(&self, round: u32, writes: u32) {
        let key = self.key();
        self.section(async |guard| {
            let stock = guard.fence(&self.sink);
            for number in 0..writes {
                let request = Request::new(format_args!("set-{round}-{number}"), &number);
                let write = RedisBatch::new().set(&*key, number.to_string());
                let [set] = stock
                    .run::<[i64; 1]>(request, write)
                    .await
                    .expect("a write")
                    .into_answer();
                black_box(set);
            }
        })
        .await;
    }

    async fn fenced_incr(&self, writes: u32) {
        let key = self.key();
        self.section(async |guard| {
            let stock = guard.fence(&self.sink);
            for _ in 0..writes {
                let write = RedisBatch::new().incr(&*key, 1);
                let [sum]: [i64; 1] = stock.apply(write).await.expect("a write");
                black_box(sum);
            }
        })
        .await;
    }
}
