use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// How a [`Race`] ended.
#[derive(Debug)]
pub(crate) enum Raced<T, L> {
    /// The body finished.
    Done(T),
    /// The stop signal came first; the body is already dropped.
    Stopped(L),
}

pin_project! {
    /// Polls a body until it finishes or a stop signal resolves.
    ///
    /// The signal is asked first, so a body is never resumed after a stop that was already
    /// visible. The body is dropped inside the `poll` that sees the stop.
    #[must_use = "futures do nothing unless polled"]
    pub(crate) struct Race<B, S> {
        #[pin]
        body: Slot<B>,
        #[pin]
        stop: S,
    }
}

pin_project! {
    #[project = SlotProj]
    enum Slot<B> {
        Full { #[pin] body: B },
        Empty,
    }
}

impl<B: Future, S: Future> Race<B, S> {
    pub(crate) fn new(body: B, stop: S) -> Self {
        Self {
            body: Slot::Full { body },
            stop,
        }
    }
}

impl<B: Future, S: Future> Future for Race<B, S> {
    type Output = Raced<B::Output, S::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Poll::Ready(stopped) = this.stop.poll(cx) {
            this.body.set(Slot::Empty);
            return Poll::Ready(Raced::Stopped(stopped));
        }
        let SlotProj::Full { body } = this.body.as_mut().project() else {
            panic!("`Race` polled after completion");
        };
        match body.poll(cx) {
            Poll::Ready(value) => {
                this.body.set(Slot::Empty);
                Poll::Ready(Raced::Done(value))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
