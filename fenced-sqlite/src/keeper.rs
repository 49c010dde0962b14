mod batch;
mod heads;

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fenced_core::{LeaseControl, LockError};

use crate::contender::{Contender, Job, Leaving, limit};
use crate::jitter::jittered;
use crate::queue::{Queue, QueueError};

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
}
