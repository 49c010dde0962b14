//! Files that lose their name while they are open.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fenced_core::{
    Fence, FencingSink as _, FencingToken, LockError, LockPath, LockRequest, LockService as _,
    LossReason, Request, SinkError, Statement,
};
use fenced_sqlite::{SqliteLocks, SqliteSink};

const PATIENCE: Duration = Duration::from_secs(20);

/// Gives the file and what SQLite keeps beside it another name.
fn rename(from: &Path, to: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let [from, to] = [from, to].map(|path| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        });
        std::fs::rename(from, to).unwrap();
    }
}

fn is_replaced(error: &dyn std::error::Error) -> bool {
    let cause = error.source().expect("a cause");
    cause.to_string().contains("was deleted or replaced")
}

#[tokio::test]
async fn nobody_holds_a_lock_in_a_file_that_others_cannot_see() {
    let folder = tempfile::tempdir().unwrap();
    let builder = SqliteLocks::builder().lease(Duration::from_millis(600));
    let locks = builder.open(folder.path().join("shop.db")).await.unwrap();
    let path = LockPath::new("/locks/a").unwrap();
    let request = || LockRequest::new(&path, PATIENCE);
    let lease = locks.acquire(request()).await.unwrap();
    let (mut second, aside) = (
        std::pin::pin!(locks.acquire(request())),
        folder.path().join("aside"),
    );
    rename(locks.file(), &aside);
    tokio::select! {
        error = &mut second => assert!(is_replaced(&error.unwrap_err())),
        () = tokio::time::sleep(PATIENCE) => panic!("it waits for a file that is gone"),
    }
    let loss = lease.loss().expect("the lease is lost, too");
    assert_eq!(loss.reason, LossReason::NodeDeleted);
    let third = locks.acquire(request()).await;
    assert!(matches!(&third, Err(error @ LockError::Refused { .. }) if is_replaced(error)));
    rename(&aside, locks.file());
    let again = locks.acquire(request()).await.unwrap();
    assert!(again.token() > lease.token());
}

#[tokio::test]
async fn nothing_is_written_to_a_file_that_others_cannot_see() {
    let folder = tempfile::tempdir().unwrap();
    let sink = SqliteSink::open(folder.path().join("shop.db"))
        .await
        .unwrap();
    let fence = Fence::new("/locks/a", FencingToken::try_from(7_i64).unwrap());
    sink.claim(&fence).await.unwrap();
    sink.read(|_| Ok(())).await.unwrap();
    let aside = folder.path().join("aside");
    rename(sink.file(), &aside);
    let other = SqliteSink::open(sink.file()).await.unwrap();
    let backend = |error: SinkError| {
        matches!(&error, SinkError::Backend(cause)
        if cause.to_string().contains("was deleted or replaced"))
    };
    let create = || vec![Statement::new("CREATE TABLE stock (count INTEGER)")];
    let request = Request::new("order-1", &1);
    let written = sink.write(&fence, &request, create()).await;
    assert!(backend(written.unwrap_err()));
    assert!(backend(sink.read(|_| Ok(())).await.unwrap_err()));
    other.write(&fence, &request, create()).await.unwrap();
}
