//! Where free functions take their locks from.
#![deny(warnings, clippy::all, clippy::pedantic)]

use fenced::prelude::*;
use fenced::{AlreadyInstalled, MemoryLocks, install, with_locks};

#[fenced(lock = "/free/<id>")]
async fn free(guard: FencedGuard<'_>, id: u64) -> Result<i64, LockError> {
    assert_eq!(guard.path().as_str(), format!("/free/{id}"));
    tokio::task::yield_now().await;
    Ok(guard.token().get())
}

/// `install` is once for each process, so this is one test.
#[tokio::test]
async fn a_service_is_installed_once_and_overridden_for_one_task() {
    let none = free(1).await;
    assert!(
        matches!(&none, Err(LockError::NoService { path, .. }) if path.as_str() == "/free/1"),
        "{none:?}"
    );

    let installed = MemoryLocks::new();
    assert_eq!(install(installed.clone()), Ok(()));
    assert_eq!(install(MemoryLocks::new()), Err(AlreadyInstalled));
    assert_eq!(free(1).await.unwrap(), 1);

    let own = MemoryLocks::new();
    let tokens = with_locks(own.clone(), async {
        let mine = free(1).await.unwrap();
        let spawned = tokio::spawn(free(1)).await.unwrap().unwrap();
        let nested = with_locks(MemoryLocks::new(), free(1)).await.unwrap();
        (mine, spawned, nested, free(1).await.unwrap())
    });
    assert_eq!(tokens.await, (1, 2, 1, 2));
    assert_eq!(tokio::spawn(free(1)).await.unwrap().unwrap(), 3);
}
