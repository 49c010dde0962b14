//! What the locks of a file promise beyond the conformance suite.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use fenced_core::{
    Lease, LockError, LockPath, LockRequest, LockService, LossReason, Released, section,
};
use fenced_sqlite::rusqlite::{Connection, Result as SqlResult};
use fenced_sqlite::{OpenError, SqliteLocks};
use nix::time::ClockId;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

struct File {
    folder: TempDir,
}

impl File {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("shop.db")
    }

    async fn locks(&self, lease: Duration) -> SqliteLocks {
        let builder = SqliteLocks::builder().lease(lease).label("the test");
        builder.open(self.data()).await.unwrap()
    }

    fn rows(&self) -> Connection {
        let rows = Connection::open(self.folder.path().join("shop.db.locks")).unwrap();
        rows.busy_timeout(PATIENCE).unwrap();
        rows
    }

    fn count(&self) -> i64 {
        let count = "SELECT count(*) FROM contender";
        self.rows().query_row(count, [], |row| row.get(0)).unwrap()
    }

    /// A row of a process that never comes back, as of that machine.
    fn abandon(&self, boot: Option<&str>, time_namespace: Option<&str>) -> SqlResult<()> {
        let rows = self.rows();
        rows.execute(
            "INSERT INTO contender (path, owner, label, expires) VALUES (?1, 1, 'old', ?2)",
            (path().as_str(), i64::MAX),
        )?;
        rows.execute(
            "UPDATE machine SET boot = coalesce(?1, boot),
             time_namespace = coalesce(?2, time_namespace)",
            (boot, time_namespace),
        )?;
        Ok(())
    }
}

fn path() -> LockPath {
    LockPath::new("/locks/a").unwrap()
}

async fn acquire(locks: &SqliteLocks) -> Lease {
    let path = path();
    let request = LockRequest::new(&path, PATIENCE);
    locks.acquire(request).await.unwrap()
}

async fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_timeout_tells_who_holds_the_lock_and_how_many_wait() {
    let file = File::new();
    let locks = file.locks(PATIENCE).await;
    let held = acquire(&locks).await;
    let waiting = tokio::spawn({
        let locks = locks.clone();
        async move { acquire(&locks).await }
    });
    wait_for("a waiter", || file.count() == 2).await;
    for timeout in [Duration::ZERO, Duration::from_millis(50)] {
        let path = path();
        let error = locks.acquire(LockRequest::new(&path, timeout)).await;
        let LockError::Timeout { queue, .. } = error.unwrap_err() else {
            panic!("no timeout");
        };
        assert_eq!(queue.holder.as_deref(), Some("the test"));
        assert_eq!(queue.ahead, Some(2));
    }
    held.release().await.unwrap();
    drop(waiting.await.unwrap());
}

#[tokio::test]
async fn a_lease_is_renewed_while_the_runtime_is_blocked() {
    let file = File::new();
    let lease_length = Duration::from_millis(600);
    let locks = file.locks(lease_length).await;
    let held = acquire(&locks).await;
    // This runtime has one thread, and it does nothing else for three lengths of the lease.
    std::thread::sleep(3 * lease_length);
    assert_eq!(held.loss(), None);
    assert_eq!(held.release().await.unwrap(), Released::Confirmed);
}

#[tokio::test]
async fn a_holder_gives_up_before_others_take_over() {
    let file = File::new();
    let lease_length = Duration::from_secs(10);
    let held = acquire(&file.locks(lease_length).await).await;
    let remaining = held.remaining();
    let clock = if cfg!(target_vendor = "apple") {
        // CLOCK_UPTIME_RAW
        ClockId::from_raw(8)
    } else {
        ClockId::CLOCK_MONOTONIC
    };
    let now: Duration = clock.now().unwrap().into();
    let expires = "SELECT expires FROM contender";
    let expires: i64 = file
        .rows()
        .query_row(expires, [], |row| row.get(0))
        .unwrap();
    let expires = Duration::from_nanos(expires.try_into().unwrap());
    let others = expires.saturating_sub(now);
    assert!(remaining < others, "{remaining:?}, others {others:?}");
    assert!(others <= lease_length, "{others:?}");
}

#[tokio::test]
async fn a_lease_that_cannot_be_renewed_is_lost() {
    let file = File::new();
    let lease_length = Duration::from_millis(500);
    let locks = file.locks(lease_length).await;
    let held = acquire(&locks).await;
    let blocker = file.rows();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let loss = tokio::time::timeout(PATIENCE, held.lost()).await.unwrap();
    assert_eq!(loss.reason, LossReason::DeadlinePassed);
    blocker.execute_batch("ROLLBACK").unwrap();
    let next = acquire(&locks).await;
    assert!(next.token() > loss.token);
}

#[tokio::test]
async fn an_acquire_is_refused_in_time_while_the_file_is_blocked() {
    let file = File::new();
    let locks = file.locks(PATIENCE).await;
    let blocker = file.rows();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (path, timeout) = (path(), Duration::from_millis(200));
    let started = Instant::now();
    let error = locks.acquire(LockRequest::new(&path, timeout)).await;
    let waited = started.elapsed();
    let error = error.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    let us = format!("process {}", std::process::id());
    assert!(
        !cfg!(target_os = "linux") || error.to_string().contains(&us),
        "{error}"
    );
    assert!(waited >= timeout, "{waited:?}");
    assert!(waited < timeout + Duration::from_secs(2), "{waited:?}");
    blocker.execute_batch("ROLLBACK").unwrap();
    wait_for("nothing is left", || file.count() == 0).await;
    acquire(&locks).await.release().await.unwrap();
}

#[tokio::test]
async fn leases_of_an_earlier_start_of_the_machine_are_over() {
    let file = File::new();
    let before = acquire(&file.locks(PATIENCE).await).await.token();
    wait_for("the release", || file.count() == 0).await;
    file.abandon(Some("another boot"), None).unwrap();
    let after = acquire(&file.locks(PATIENCE).await).await;
    assert!(after.token().get() > before.get() + 1, "no token twice");
    assert_eq!(file.count(), 1);
}

#[tokio::test]
async fn locks_in_use_under_another_clock_are_refused() {
    let file = File::new();
    let locks = file.locks(PATIENCE).await;
    file.abandon(None, Some("time:[1]")).unwrap();
    let error = SqliteLocks::open(file.data()).await.unwrap_err();
    assert!(matches!(error, OpenError::TimeNamespace { .. }), "{error}");
    let path = path();
    let error = locks.acquire(LockRequest::new(&path, PATIENCE)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("time:[1]"), "{error}");
    file.rows().execute("DELETE FROM contender", []).unwrap();
    acquire(&locks).await.release().await.unwrap();
}

#[tokio::test]
async fn the_counter_outlives_every_row() {
    let file = File::new();
    let mut last = 0;
    for _ in 0..5 {
        let locks = file.locks(PATIENCE).await;
        let lease = acquire(&locks).await;
        assert_eq!(lease.token().get(), last + 1);
        last = lease.token().get();
        lease.release().await.unwrap();
        assert_eq!(file.count(), 0);
    }
}

#[tokio::test]
async fn a_counter_at_its_end_grants_nothing() {
    let file = File::new();
    let locks = file.locks(PATIENCE).await;
    let set = "INSERT INTO sqlite_sequence VALUES ('contender', ?1)";
    file.rows().execute(set, [i64::MAX - 1]).unwrap();
    let last = acquire(&locks).await;
    assert_eq!(last.token().get(), i64::MAX);
    last.release().await.unwrap();
    let (path, timeout) = (path(), Duration::from_millis(200));
    let error = locks.acquire(LockRequest::new(&path, timeout)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn a_waiter_whose_row_is_gone_queues_again() {
    let file = File::new();
    let locks = file.locks(Duration::from_millis(600)).await;
    let held = acquire(&locks).await;
    let token = held.token();
    let waiting = tokio::spawn({
        let locks = locks.clone();
        async move { acquire(&locks).await }
    });
    wait_for("a waiter", || file.count() == 2).await;
    let delete = "DELETE FROM contender WHERE token > ?1";
    assert_eq!(file.rows().execute(delete, [token.get()]), Ok(1));
    wait_for("a new row", || file.count() == 2).await;
    held.release().await.unwrap();
    assert!(waiting.await.unwrap().token().get() > token.get() + 1);
}

#[tokio::test]
async fn a_file_that_was_opened_twice_is_one_set_of_locks() {
    let file = File::new();
    let (outer, inner) = (file.locks(PATIENCE).await, file.locks(PATIENCE).await);
    assert_eq!(outer.id(), inner.id());
    let nested = section(&outer, "/locks/a").run(async |_| {
        let nested = section(&inner, "/locks/a").timeout(PATIENCE);
        nested.run(async |_| ()).await
    });
    let error = nested.await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Reentrant { .. }), "{error}");
    assert_ne!(outer.id(), File::new().locks(PATIENCE).await.id());
}

#[tokio::test]
async fn options_are_kept_within_their_bounds() {
    let file = File::new();
    let locks = SqliteLocks::builder()
        .lease(Duration::ZERO)
        .poll_interval(Duration::from_secs(3_600))
        .label("x".repeat(10_000))
        .open(file.data())
        .await
        .unwrap();
    let held = acquire(&locks).await;
    assert!(held.remaining() <= SqliteLocks::SHORTEST_LEASE);
    let label = "SELECT length(label) FROM contender";
    let label: i64 = file.rows().query_row(label, [], |row| row.get(0)).unwrap();
    assert_eq!(label, 200);
    let started = Instant::now();
    let (next, released) = tokio::join!(acquire(&locks), held.release());
    released.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
    next.release().await.unwrap();
}

#[tokio::test]
async fn locks_of_a_newer_layout_are_refused() {
    let file = File::new();
    file.locks(PATIENCE).await;
    file.rows()
        .execute_batch("PRAGMA user_version = 2")
        .unwrap();
    let error = SqliteLocks::open(file.data()).await.unwrap_err();
    assert!(
        matches!(error, OpenError::Newer { found: 2, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_lease_outlives_the_handle_it_came_from() {
    let file = File::new();
    let locks = file.locks(Duration::from_millis(300)).await;
    let held = acquire(&locks).await;
    drop(locks);
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(held.loss(), None);
    assert_eq!(held.release().await.unwrap(), Released::Confirmed);
    assert_eq!(file.count(), 0);
}
