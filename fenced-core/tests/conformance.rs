//! The in-memory lock service and sink pass the suites that they come with.

use async_trait::async_trait;
use fenced_core::testing::{LocksUnderTest, SinkUnderTest};
use fenced_core::{LockPath, LockService, LossReason, MemoryLocks, MemorySink, MemoryWrite};

mod locks {
    use super::*;

    struct Memory(MemoryLocks);

    #[async_trait]
    impl LocksUnderTest for Memory {
        async fn open(&self) -> Box<dyn LockService> {
            Box::new(self.0.clone())
        }

        async fn contenders(&self, path: &LockPath) -> usize {
            let holders = self.0.token(path.as_str()).into_iter().count();
            holders + self.0.waiters(path.as_str())
        }

        async fn take_away(&self, path: &LockPath) {
            assert!(self.0.lose(path.as_str(), LossReason::NodeDeleted));
        }
    }

    fenced_core::lock_conformance!(async { Memory(MemoryLocks::new()) });
}

mod sinks {
    use super::*;

    struct Memory(MemorySink);

    #[async_trait]
    impl SinkUnderTest for Memory {
        type Sink = MemorySink;

        fn sink(&self) -> &MemorySink {
            &self.0
        }

        fn add(&self, resource: &str, amount: i64) -> MemoryWrite {
            MemoryWrite::add(resource, amount)
        }

        fn set(&self, resource: &str, value: i64) -> MemoryWrite {
            MemoryWrite::set(resource, value)
        }

        async fn value(&self, resource: &str) -> i64 {
            self.0.get(resource)
        }
    }

    fenced_core::sink_conformance!(async { Memory(MemorySink::new()) });
}
