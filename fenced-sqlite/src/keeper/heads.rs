//! The oldest rows, and whose they are.

use std::collections::HashMap;
use std::time::Instant;

use fenced_core::{FencingToken, Lease};

use super::{Keeper, Waiter};
use crate::clock;
use crate::lease::Handle;

impl Keeper {
    /// Grants what has become free.
    pub(super) fn look(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        match self.look_at_heads() {
            Ok(()) => {}
            Err(error) => self.fail(error.into()),
        }
    }

    fn look_at_heads(&mut self) -> rusqlite::Result<()> {
        let version = Some(self.queue.version()?);
        if self.seen == version && clock::now() < self.expires {
            return Ok(());
        }
        self.expires = i64::MAX;
        let mut paths = HashMap::new();
        for (token, waiter) in &self.waiting {
            paths.entry(waiter.contender.path.clone()).or_insert(*token);
        }
        for (path, first) in paths {
            match self.queue.head(&path)? {
                Some(head) if head.token == first => self.grant(first),
                Some(head) if head.expires <= clock::now() => self.removes = true,
                Some(head) => self.expires = self.expires.min(head.expires),
                None => self.renew_at = Instant::now(),
            }
        }
        self.seen = version;
        Ok(())
    }

    /// The row of `token` is the oldest, and stays that until it expires.
    fn grant(&mut self, token: i64) {
        let Some(waiter) = self.waiting.remove(&token) else {
            return;
        };
        if waiter.until <= Instant::now() {
            self.waiting.insert(token, waiter);
            self.renew_at = Instant::now();
            return;
        }
        let Waiter { contender, until } = waiter;
        let Ok(fencing) = FencingToken::try_from(token) else {
            return;
        };
        let handle = Handle::new(contender.path.clone(), token, self.lease, contender.jobs);
        let (lease, control) = Lease::grant(contender.path, fencing, until, handle);
        self.held.insert(token, control);
        // Nobody takes it any more: it is dropped, and comes back as a job.
        drop(contender.reply.send(Ok(lease)));
    }
}
