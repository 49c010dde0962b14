use std::io::Write as _;
use std::time::Duration;

use fenced::sqlite::rusqlite::{self, Connection};
use fenced::sqlite::{SqliteFenced, SqliteLocks, SqliteSink};
use fenced::{
    Fence, FencedGuard, FencingSink as _, OnLost, Outcome, Request, SinkError, Statement, section,
};
use rustix::process::{Signal, getpid, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines, Stdin};

use crate::process::Process;

/// What comes before each thing that a child says.
pub(crate) const MARK: &str = "child: ";

/// What tells a process to be a child.
pub(crate) const VARIABLE: &str = "FENCED_SQLITE_CHILD";

/// The test that is the child's program.
pub(crate) const TEST: &str = "child::ends_with_its_starter";

#[test]
fn ends_with_its_starter() {
    if std::env::var_os(VARIABLE).is_some() {
        fenced_core::testing::run(obey());
    } else {
        let mut child = Process::start();
        assert!(child.wait());
    }
}

type Orders = Lines<BufReader<Stdin>>;

struct Files {
    locks: SqliteLocks,
    stock: SqliteSink,
}

async fn obey() {
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    let mut files = None;
    while let Some(order) = orders.next_line().await.unwrap() {
        let words: Vec<&str> = order.split(' ').collect();
        match (&words[..], &files) {
            (["open", lease, file], _) => {
                files = Some(Files::open(file, millis(lease)).await);
                say("opened");
            }
            (["enter", path], Some(files)) => enter(files, path, &mut orders).await,
            (["visit", path, times], Some(files)) => {
                visit(files, path, times.parse().unwrap()).await;
            }
            (["write", path, token, id], Some(files)) => {
                write(files, path, token.parse().unwrap(), id).await;
            }
            _ => panic!("unknown order: {order}"),
        }
    }
}

impl Files {
    async fn open(file: &str, lease: Duration) -> Self {
        let locks = SqliteLocks::builder().lease(lease).patience(LONG);
        let stock = SqliteSink::builder().busy_limit(Duration::from_secs(1));
        Self {
            locks: locks.open(file).await.unwrap(),
            stock: stock.open(file).await.unwrap(),
        }
    }
}

const LONG: Duration = Duration::from_mins(1);

/// A section that does what it is told, also once its lease is lost.
async fn enter(files: &Files, path: &str, orders: &mut Orders) {
    let entered = section(&files.locks, path)
        .timeout(LONG)
        .on_lost(OnLost::Finish)
        .run(async |guard| {
            say(&format!("token {}", guard.token()));
            inside(&files.stock, &guard, orders).await;
        });
    match entered.await {
        Ok(()) => say("left"),
        Err(error) => say(&format!("error {error}")),
    }
}

async fn inside(stock: &SqliteSink, guard: &FencedGuard<'_>, orders: &mut Orders) {
    let stock = guard.fence(stock);
    while let Some(order) = orders.next_line().await.unwrap() {
        let words: Vec<&str> = order.split(' ').collect();
        let (verb, request) = (words[0], Request::new(words.get(1).unwrap_or(&"-"), &1));
        match verb {
            "leave" => return,
            "add" => answer(stock.run(request, add).await),
            "stop" => answer(stock.run(request, |tx| add_then(tx, Signal::STOP)).await),
            "die" => answer(stock.run(request, |tx| add_then(tx, Signal::KILL)).await),
            "pour" => pour(stock, words[1]).await,
            _ => panic!("unknown order: {order}"),
        }
    }
}

/// Writes without end, and says which writes were acknowledged.
async fn pour(stock: fenced::Fenced<'_, SqliteSink>, prefix: &str) {
    for number in 1.. {
        let request = Request::new(format!("{prefix}-{number}"), &1);
        stock.run(request, add).await.unwrap().into_answer();
        say(&number.to_string());
    }
}

fn add(tx: &Connection) -> Result<i64, Failure> {
    let add = "UPDATE stock SET count = count + 1 RETURNING count";
    Ok(tx.query_row(add, [], |row| row.get(0))?)
}

fn add_then(tx: &Connection, signal: Signal) -> Result<i64, Failure> {
    let count = add(tx)?;
    say("inside");
    kill_process(getpid(), signal).unwrap();
    Ok(count)
}

/// Sections that write down who was in and when, in transactions of their own.
async fn visit(files: &Files, path: &str, times: usize) {
    for _ in 0..times {
        let visited = section(&files.locks, path)
            .timeout(LONG)
            .run(async |guard| {
                let (stock, token) = (guard.fence(&files.stock), guard.token().get());
                let count = stock.transaction(move |tx| {
                    note(tx, token, "enter")?;
                    Ok::<i64, Failure>(
                        tx.query_row("SELECT count FROM stock", [], |row| row.get(0))?,
                    )
                });
                let count = count.await?;
                let leaving = stock.transaction(move |tx| {
                    note(tx, token, "leave")?;
                    tx.execute("UPDATE stock SET count = ?1", [count + 1])?;
                    Ok::<(), Failure>(())
                });
                leaving.await
            });
        visited.await.unwrap().unwrap();
    }
    say("done");
}

fn note(tx: &Connection, token: i64, event: &str) -> Result<usize, Failure> {
    Ok(tx.execute(
        "INSERT INTO visit (token, event) VALUES (?1, ?2)",
        (token, event),
    )?)
}

/// A write with a token from elsewhere, without any lease.
async fn write(files: &Files, path: &str, token: i64, id: &str) {
    let fence = Fence::new(path, token.try_into().unwrap());
    let add = Statement::new("UPDATE stock SET count = count + 1");
    let request = Request::new(id, &1);
    let written = files.stock.write(&fence, &request, vec![add]);
    answer(written.await.map_err(Failure::from));
}

fn answer<T>(outcome: Result<Outcome<T>, Failure>) {
    say(&match outcome {
        Ok(Outcome::Applied(_)) => "applied".to_owned(),
        Ok(Outcome::Replayed(_)) => "replayed".to_owned(),
        Err(Failure::Sink(SinkError::Stale { mine, current })) => format!("stale {mine} {current}"),
        Err(Failure::Sink(SinkError::Busy { pids, .. })) => format!("busy {pids:?}"),
        Err(Failure::Sink(SinkError::Lost(loss))) => format!("lost {:?}", loss.reason),
        Err(other) => format!("error {other}"),
    });
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{MARK}{what}").unwrap();
    out.flush().unwrap();
}

fn millis(text: &str) -> Duration {
    Duration::from_millis(text.parse().unwrap())
}

#[derive(Debug)]
enum Failure {
    Sink(SinkError),
    Sql(rusqlite::Error),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sink(error) => error.fmt(f),
            Self::Sql(error) => error.fmt(f),
        }
    }
}

macro_rules! from {
    ($($error:ty => $kind:ident),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::$kind(error)
            }
        }
    )*};
}
from!(SinkError => Sink, rusqlite::Error => Sql);
