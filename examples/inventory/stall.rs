use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use fenced::{Answer, Fate, Fence, FencingSink, LockPath, Outcome, Request, SinkError, Statement};
use rustix::process::{Signal, getpid, kill_process};

use crate::event::{Event, Place};
use crate::stock::Stock;
use crate::world::Failure;

/// A stock whose first write stops the process: the guard has been asked, no byte has left.
pub(crate) struct Stalling {
    stock: Box<dyn Stock>,
    armed: AtomicBool,
}

impl Stalling {
    pub(crate) fn new(stock: Box<dyn Stock>) -> Self {
        let armed = AtomicBool::new(true);
        Self { stock, armed }
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
        self.stock.claim(fence).await
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
        self.stock.write(fence, request, write).await
    }

    async fn outcome(&self, request: &Request) -> Result<Fate<Answer>, SinkError> {
        self.stock.outcome(request).await
    }

    fn resource<'a>(&'a self, path: &'a LockPath) -> Cow<'a, str> {
        self.stock.resource(path)
    }
}

#[async_trait]
impl Stock for Stalling {
    async fn count(&self, sku: &str) -> Result<i64, Failure> {
        self.stock.count(sku).await
    }
}
