use fenced::prelude::*;
use fenced::{LossReason, MemoryLocks};

struct Order {
    sku: String,
}

struct Inventory {
    locks: MemoryLocks,
}

impl HasLocks for Inventory {
    fn locks(&self) -> &dyn LockService {
        &self.locks
    }
}

impl Inventory {
    #[fenced(lock = "/locks/inventory/<order.sku>", timeout = "3s")]
    async fn reserve(&self, guard: FencedGuard<'_>, order: &Order) -> Result<String, LockError> {
        tokio::task::yield_now().await;
        Ok(guard.path().to_string())
    }
    #[fenced(
        lock = "/l",
        timeout = "3s",
        hold = "1s",
        on_lost = "finish",
        release = "detach",
        reentrant
    )]
    async fn all(&self, guard: FencedGuard<'_>) -> Result<&MemoryLocks, LockError> {
        self.locks.lose("/l", LossReason::Revoked);
        Ok(&self.locks)
    }
}

#[fenced(lock = "/free/<id>")]
async fn free(id: u64, guard: FencedGuard<'_>) -> Result<String, LockError> {
    Ok(guard.path().to_string())
}
#[fenced(lock = "/free/<id>", service = locks)]
async fn named(id: u64, guard: FencedGuard<'_>, locks: &MemoryLocks) -> Result<String, LockError> {
    Ok(guard.path().to_string())
}

#[tokio::test]
async fn works() {
    let i = Inventory {
        locks: MemoryLocks::new(),
    };
    let o = Order { sku: "a/b".into() };
    assert_eq!(i.reserve(&o).await.unwrap(), "/locks/inventory/a%2Fb");
    assert!(matches!(free(4).await, Err(LockError::NoService { .. })));
    assert_eq!(
        fenced::with_locks(i.locks.clone(), free(4)).await.unwrap(),
        "/free/4"
    );
    assert_eq!(named(4, &i.locks).await.unwrap(), "/free/4");
    i.all().await.unwrap();
    dbg!(size_of_val(&i.reserve(&o)));
}
