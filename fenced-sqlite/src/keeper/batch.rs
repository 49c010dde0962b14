//! What is due, in one transaction.

use std::mem;
use std::time::Instant;

use fenced_core::{LockError, LossReason};

use super::{Keeper, Waiter};
use crate::busy;
use crate::contender::Contender;
use crate::queue::QueueError;
use crate::rows::{Applied, Batch, Entered};

impl Keeper {
    pub(super) fn has_to_write(&self) -> bool {
        let renews = !self.held.is_empty() || !self.waiting.is_empty();
        self.removes
            || !self.entering.is_empty()
            || !self.leaving.is_empty()
            || (renews && Instant::now() >= self.renew_at)
    }

    /// Everything that is due, in one transaction; what fails stays due.
    pub(super) fn write(&mut self) {
        let renew = if Instant::now() >= self.renew_at {
            self.held
                .keys()
                .chain(self.waiting.keys())
                .copied()
                .collect()
        } else {
            Vec::new()
        };
        let batch = Batch {
            leave: self.leaving.iter().map(|leaving| leaving.token).collect(),
            enter: self.entering.iter().map(Contender::entry).collect(),
            renew,
        };
        match self.queue.apply(&batch) {
            Ok(applied) => {
                let Batch { renew, .. } = batch;
                self.trouble = None;
                self.settle(&renew, applied);
            }
            Err(trouble) => self.fail(trouble),
        }
    }

    fn settle(&mut self, renew: &[i64], applied: Applied) {
        let leaving = mem::take(&mut self.leaving);
        for (leaving, left) in leaving.into_iter().zip(applied.left) {
            leaving.reply.map(|reply| reply.send(left));
        }
        let entering = mem::take(&mut self.entering);
        for (contender, entered) in entering.into_iter().zip(applied.entered) {
            match entered {
                Entered::NotFree(standing) => contender.time_out(standing),
                Entered::Queued(token) => {
                    let until = applied.until;
                    self.waiting.insert(token, Waiter { contender, until });
                }
            }
        }
        for (token, is_there) in renew.iter().zip(applied.renewed) {
            self.renewed(*token, is_there.then_some(applied.until));
        }
        if !renew.is_empty() {
            self.renew_at = Instant::now() + self.lease / 3;
        }
        self.removes = false;
        self.seen = None;
    }

    /// Without a row, a lease is lost, and a waiter goes to the end of the queue.
    fn renewed(&mut self, token: i64, until: Option<Instant>) {
        match (self.held.get(&token), until) {
            (Some(control), Some(until)) => control.extend(until),
            // A row that is gone after the deadline tells nothing new.
            (Some(control), None) if control.is_over() => {}
            (Some(control), None) => {
                control.lose(LossReason::NodeDeleted);
            }
            (None, Some(until)) => {
                if let Some(waiter) = self.waiting.get_mut(&token) {
                    waiter.until = until;
                }
            }
            (None, None) => {
                let waiter = self.waiting.remove(&token);
                self.entering.extend(waiter.map(|waiter| waiter.contender));
            }
        }
    }

    pub(super) fn fail(&mut self, trouble: QueueError) {
        if let QueueError::Foreign(_) | QueueError::Replaced(_) = trouble {
            self.abandon(&trouble);
        }
        let is_busy = matches!(&trouble, QueueError::Sqlite(error) if busy::is_busy(error));
        if self.trouble.is_none() && !is_busy {
            tracing::warn!(error = %trouble, "the file of locks cannot be used; trying again");
        }
        self.trouble = Some(trouble);
    }

    /// While others use the file under another clock, or another file, there is no row of ours.
    fn abandon(&mut self, trouble: &QueueError) {
        for (_, control) in self.held.drain() {
            control.lose(LossReason::NodeDeleted);
        }
        let waiting = mem::take(&mut self.waiting).into_values();
        let entering = mem::take(&mut self.entering);
        for contender in entering.into_iter().chain(waiting.map(|w| w.contender)) {
            let error = LockError::refused(&contender.path, trouble.to_string());
            let _ = contender.reply.send(Err(error));
        }
        for leaving in mem::take(&mut self.leaving) {
            leaving.reply.map(|reply| reply.send(false));
        }
    }
}
