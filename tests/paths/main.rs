//! Every class of characters in a hole, on a real ZooKeeper: the server takes each path, and no two
//! values share one.

use std::collections::BTreeSet;
use std::time::Duration;

use fenced::prelude::*;
use fenced::zookeeper::ZkLocks;
use fenced_tests::shared;
use zookeeper_client::Client;

#[fenced(lock = "/values/<value>", timeout = "30s", service = locks)]
async fn locked(locks: &ZkLocks, guard: FencedGuard<'_>, value: &str) -> Result<String, LockError> {
    Ok(guard.path().to_string())
}

/// The ends of every range that ZooKeeper refuses, with their neighbours that it takes.
const ENDS: [char; 18] = [
    '\0',
    '\u{1}',
    '\u{1f}',
    ' ',
    '~',
    '\u{7f}',
    '\u{9f}',
    '\u{a0}',
    '\u{d7ff}',
    '\u{e000}',
    '\u{f8ff}',
    '\u{f900}',
    '\u{ffef}',
    '\u{fff0}',
    '\u{ffff}',
    '\u{10000}',
    '🦀',
    '\u{10ffff}',
];

/// What would mean something else if it were written as it is.
const WORDS: [&str; 12] = [
    ".",
    "..",
    "...",
    "/",
    "a/b",
    "/../b",
    "%",
    "%2F",
    "%2E%2E",
    "zookeeper",
    "ä ö\tü",
    "e\u{301}",
];

const KINDS: [&str; 6] = [
    "lock-",
    "latch-",
    "__lock__",
    "__rlock__",
    "__READ__",
    "__WRIT__",
];

fn values() -> BTreeSet<String> {
    let ends = ENDS
        .iter()
        .flat_map(|end| [end.to_string(), format!("a{end}b")]);
    let contenders = KINDS.iter().flat_map(|kind| {
        [
            format!("{kind}0000000001"),
            format!("_c_1-{kind}-123456789"),
            format!("{kind}000000000%31"),
        ]
    });
    let words = WORDS.iter().map(ToString::to_string);
    ends.chain(contenders).chain(words).collect()
}

#[tokio::test]
async fn every_value_has_a_path_of_its_own_on_the_server() {
    let (server, root) = (shared::zookeeper_address(), shared::fresh_root());
    let locks = ZkLocks::builder().root(&root).connect(&server).await;
    let locks = locks.expect("the server accepts sessions");
    let values = values();
    let mut paths = BTreeSet::new();
    for value in &values {
        let path = locked(&locks, value).await;
        let path = path.unwrap_or_else(|error| panic!("{value:?}: {error}"));
        assert!(paths.insert(path), "{value:?} shares a path");
    }
    let connector = Client::connector().with_session_timeout(Duration::from_secs(30));
    let admin = connector.connect(&server).await.expect("a session");
    let listed = admin.list_children(&format!("{root}/values")).await;
    let listed: BTreeSet<String> = listed
        .expect("the directory of all values")
        .into_iter()
        .map(|name| format!("/values/{name}"))
        .collect();
    // Containers are collected at some time after their last child.
    assert!(listed.is_subset(&paths), "{listed:?} of {paths:?}");
    assert_eq!(paths.len(), values.len());
}
