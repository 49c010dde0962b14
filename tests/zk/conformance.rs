//! What every lock service has to show.

use fenced::{LockPath, LockService};
use fenced_core::testing::LocksUnderTest;

use crate::setup::Ground;

#[async_trait::async_trait]
impl LocksUnderTest for Ground {
    async fn open(&self) -> Box<dyn LockService> {
        Box::new(self.locks().await)
    }

    async fn contenders(&self, path: &LockPath) -> usize {
        self.queue(path).await.len()
    }

    async fn take_away(&self, path: &LockPath) {
        let queue = self.queue(path).await;
        self.delete(path, &queue[0]).await;
    }
}

fenced_core::lock_conformance!(Ground::shared());
