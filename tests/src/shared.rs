//! The servers a whole run shares, and names that keep its tests apart on them.

use std::env;
use std::fmt::Display;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio_postgres::{Config, NoTls};

/// Names the shared ZooKeeper (`host:port`).
pub const ZOOKEEPER: &str = "FENCED_ZK";
/// Names the shared PostgreSQL (a URL).
pub const POSTGRES: &str = "FENCED_POSTGRES";
/// Names the shared Redis (a URL).
pub const REDIS: &str = "FENCED_REDIS";

/// `host:port` of the shared ZooKeeper.
///
/// # Panics
/// When the run has none.
#[must_use]
pub fn zookeeper_address() -> String {
    required(ZOOKEEPER)
}

/// The URL of the shared PostgreSQL; most tests want a [`fresh_database`].
///
/// # Panics
/// When the run has none.
#[must_use]
pub fn postgres_url() -> String {
    required(POSTGRES)
}

/// The URL of the shared Redis; tests keep to keys below a [`fresh_name`].
///
/// # Panics
/// When the run has none.
#[must_use]
pub fn redis_url() -> String {
    required(REDIS)
}

/// A name no other test has: lower-case letters, digits and `_`, at most 63 bytes.
#[must_use]
pub fn fresh_name(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(
        "{prefix}_{:x}_{:x}_{count}",
        started.as_micros(),
        process::id()
    )
}

/// An absolute ZooKeeper path that no other test has, for use as the root of its locks.
#[must_use]
pub fn fresh_root() -> String {
    format!("/{}", fresh_name("test"))
}

/// Creates an empty database on the shared PostgreSQL and returns its URL.
///
/// # Panics
/// When the run has no PostgreSQL, or it refuses.
pub async fn fresh_database() -> String {
    let shared = postgres_url();
    let name = fresh_name("test");
    create_database(&shared, &name).await;
    let (server, _) = shared
        .rsplit_once('/')
        .expect("a PostgreSQL URL ends in its database");
    format!("{server}/{name}")
}

async fn create_database(url: &str, name: &str) {
    let config: Config = url
        .parse()
        .unwrap_or_else(|error| unusable(POSTGRES, url, &error));
    let (client, connection) = config
        .connect(NoTls)
        .await
        .unwrap_or_else(|error| unusable(POSTGRES, url, &error));
    let connection = tokio::spawn(connection);
    client
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .await
        .unwrap_or_else(|error| unusable(POSTGRES, url, &error));
    drop(client);
    // Its own end; what went wrong before was reported above.
    let _ = connection.await;
}

/// The `host:port` within a URL.
#[must_use]
pub fn address_in(url: &str) -> &str {
    let (_, authority) = url.split_once("://").unwrap_or(("", url));
    let (authority, _) = authority.split_once('/').unwrap_or((authority, ""));
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, address)| address)
}

fn required(variable: &str) -> String {
    env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set: run `tests/run`, or `tests/run up` and export what it prints"
        )
    })
}

fn unusable<T>(variable: &str, value: &str, error: &dyn Display) -> T {
    panic!("{variable}={value} is of no use: {error}")
}
