use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fenced_core::{FencingToken, Lease, LeaseControl, LockError, LossReason};

use crate::busy;
use crate::clock;
use crate::contender::{Contender, Job, Leaving, limit};
use crate::jitter::jittered;
use crate::lease::Handle;
use crate::queue::{Queue, QueueError};
use crate::rows::{Applied, Batch, Entered};

/// How soon a file that failed is tried again.
const RETRY: Duration = Duration::from_millis(20);

struct Waiter {
    contender: Contender,
    /// Until when its row is surely there.
    until: Instant,
}

/// The thread that keeps the places and leases of one [`SqliteLocks`](crate::SqliteLocks).
///
/// It depends on no runtime, so that nothing that blocks one can cost a lease.
pub(crate) struct Keeper {
    queue: Queue,
    jobs: Receiver<Job>,
    lease: Duration,
    poll: Duration,
    entering: Vec<Contender>,
    waiting: BTreeMap<i64, Waiter>,
    held: HashMap<i64, LeaseControl>,
    leaving: Vec<Leaving>,
    renew_at: Instant,
    /// Whether a row in front of a waiter has expired.
    removes: bool,
    /// The file as it was when the heads were looked at.
    seen: Option<i64>,
    /// When the first of those heads expires.
    expires: i64,
    /// Why the file could not be written.
    trouble: Option<QueueError>,
}

impl Keeper {
    pub(crate) fn new(queue: Queue, jobs: Receiver<Job>, lease: Duration, poll: Duration) -> Self {
        Self {
            queue,
            jobs,
            lease,
            poll,
            entering: Vec::new(),
            waiting: BTreeMap::new(),
            held: HashMap::new(),
            leaving: Vec::new(),
            renew_at: Instant::now() + lease / 3,
            removes: false,
            seen: None,
            expires: i64::MAX,
            trouble: None,
        }
    }

    /// Works until nobody is left who could ask for anything.
    pub(crate) fn run(mut self) {
        while self.collect() {
            self.dismiss();
            if self.has_to_write() {
                self.write();
            }
            self.look();
        }
    }

    /// Waits for something to do; `false` when nothing will ever come.
    fn collect(&mut self) -> bool {
        let first = match self.nap() {
            Some(nap) => self.jobs.recv_timeout(nap),
            None => self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match first {
            Ok(job) => self.accept(job),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if self.leaving.is_empty() => return false,
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(RETRY),
        }
        while let Ok(job) = self.jobs.try_recv() {
            self.accept(job);
        }
        true
    }

    fn accept(&mut self, job: Job) {
        match job {
            Job::Enter(contender) => self.entering.push(contender),
            Job::Leave(leaving) => {
                self.held.remove(&leaving.token);
                self.leaving.push(leaving);
            }
        }
    }

    /// How long nothing has to be done; `None` if that is for ever.
    fn nap(&self) -> Option<Duration> {
        let now = Instant::now();
        let contenders = self.entering.iter().chain(self.contenders());
        let mut at: Option<Instant> = contenders.map(|c| limit(&c.budget)).min();
        let mut by = |next: Instant| at = Some(at.map_or(next, |at| at.min(next)));
        if !self.held.is_empty() || !self.waiting.is_empty() {
            by(self.renew_at);
        }
        if !self.waiting.is_empty() {
            by(now + jittered(self.poll));
        }
        if self.removes || !self.entering.is_empty() || !self.leaving.is_empty() {
            by(now);
        }
        let nap = at?.saturating_duration_since(now);
        Some(if self.trouble.is_some() {
            nap.max(jittered(RETRY))
        } else {
            nap
        })
    }

    fn contenders(&self) -> impl Iterator<Item = &Contender> {
        self.waiting.values().map(|waiter| &waiter.contender)
    }

    /// Sends those away whose time is up, and forgets those who went.
    fn dismiss(&mut self) {
        let now = Instant::now();
        let is_done = |c: &Contender| c.reply.is_closed() || limit(&c.budget) <= now;
        self.leaving.retain(|leaving| now < leaving.until);
        let (done, entering) = mem::take(&mut self.entering).into_iter().partition(is_done);
        self.entering = entering;
        for contender in Vec::into_iter(done) {
            self.refuse(contender);
        }
        let done: Vec<i64> = self
            .waiting
            .iter()
            .filter(|(_, waiter)| is_done(&waiter.contender))
            .map(|(token, _)| *token)
            .collect();
        for token in done {
            self.give_up(token);
        }
    }

    fn refuse(&self, contender: Contender) {
        let cause = match &self.trouble {
            Some(trouble) => self.queue.explain(trouble),
            None => "its file was not reached in time".to_owned(),
        };
        let (path, waited) = (&contender.path, contender.budget.waited());
        let error = LockError::unavailable(path, waited, cause);
        let _ = contender.reply.send(Err(error));
    }

    fn give_up(&mut self, token: i64) {
        let Some(Waiter { contender, .. }) = self.waiting.remove(&token) else {
            return;
        };
        self.leaving.push(Leaving {
            token,
            reply: None,
            until: Instant::now() + self.lease,
        });
        if !contender.reply.is_closed() {
            let standing = self.queue.standing(&contender.path, token);
            contender.time_out(standing.unwrap_or_default());
        }
    }

    fn has_to_write(&self) -> bool {
        let renews = !self.held.is_empty() || !self.waiting.is_empty();
        self.removes
            || !self.entering.is_empty()
            || !self.leaving.is_empty()
            || (renews && Instant::now() >= self.renew_at)
    }

    /// Everything that is due, in one transaction; what fails stays due.
    fn write(&mut self) {
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

    fn fail(&mut self, trouble: QueueError) {
        if let QueueError::Foreign(_) = trouble {
            for contender in mem::take(&mut self.entering) {
                let error = LockError::refused(&contender.path, trouble.to_string());
                let _ = contender.reply.send(Err(error));
            }
            // While others use the file under another clock, there is no row of ours in it.
            for leaving in mem::take(&mut self.leaving) {
                leaving.reply.map(|reply| reply.send(false));
            }
        }
        let is_busy = matches!(&trouble, QueueError::Sqlite(error) if busy::is_busy(error));
        if self.trouble.is_none() && !is_busy {
            tracing::warn!(error = %trouble, "the file of locks cannot be used; trying again");
        }
        self.trouble = Some(trouble);
    }

    /// Grants what has become free.
    fn look(&mut self) {
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
