use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fenced_core::{LeaseHandle, LockError, LockPath, Released};
use tokio::sync::oneshot;

use crate::contender::{Job, Leaving};

/// What frees a lock of [`SqliteLocks`](crate::SqliteLocks).
pub(crate) struct Handle {
    path: LockPath,
    token: i64,
    lease: Duration,
    /// Empty once the lock is on its way back.
    jobs: Option<Sender<Job>>,
}

impl Handle {
    pub(crate) fn new(path: LockPath, token: i64, lease: Duration, jobs: Sender<Job>) -> Self {
        let jobs = Some(jobs);
        Self {
            path,
            token,
            lease,
            jobs,
        }
    }

    fn leave(&mut self, reply: Option<oneshot::Sender<bool>>) {
        if let Some(jobs) = self.jobs.take() {
            let until = Instant::now() + self.lease;
            let token = self.token;
            // Without the thread the row expires.
            let _ = jobs.send(Job::Leave(Leaving {
                token,
                reply,
                until,
            }));
        }
    }
}

#[async_trait]
impl LeaseHandle for Handle {
    async fn release(mut self: Box<Self>) -> Result<Released, LockError> {
        let started = Instant::now();
        let (reply, answer) = oneshot::channel();
        self.leave(Some(reply));
        match answer.await {
            Ok(true) => Ok(Released::Confirmed),
            Ok(false) => Ok(Released::AlreadyGone),
            Err(_) => {
                let cause = "its file could not be written; the lock is free once it has expired";
                Err(LockError::unavailable(&self.path, started.elapsed(), cause))
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.leave(None);
    }
}
