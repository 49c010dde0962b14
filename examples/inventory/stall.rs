use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use fenced::{Answer, Fate, Fence, FencingSink, LockPath, Outcome, Request, SinkError, Statement};
use rustix::process::{Signal, getpid, kill_process};

use crate::event::{Event, Place};
use crate::stock::Sales;

/// Sales whose first write stops the process: the guard has been asked, no byte has left.
pub(crate) struct Stalling {
    sales: Box<Sales>,
    armed: AtomicBool,
}

impl Stalling {
    pub(crate) fn new(sales: Box<Sales>) -> Self {
        let armed = AtomicBool::new(true);
        Self { sales, armed }
    }
}

/// Stops this process until somebody continues it.
pub(crate) fn stop_here(token: i64, place: Place) {
    Event::Stopping { token, place }.tell();
    kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
}

#[async_trait]
impl FencingSink for Stalling {
    type Write = Vec<Statement>;
    type Answer = Answer;

    async fn claim(&self, fence: &Fence) -> Result<(), SinkError> {
        self.sales.claim(fence).await
    }

    async fn write(
        &self,
        fence: &Fence,
        request: &Request,
        write: Vec<Statement>,
    ) -> Result<Outcome<Answer>, SinkError> {
        if self.armed.swap(false, Ordering::Relaxed) {
            stop_here(fence.token.get(), Place::InsideWrite);
        }
        self.sales.write(fence, request, write).await
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<Answer>, SinkError> {
        self.sales.outcome(request).await
    }

    fn resource<'a>(&'a self, path: &'a LockPath) -> Cow<'a, str> {
        self.sales.resource(path)
    }
}
