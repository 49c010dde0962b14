use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::LockError;
use crate::held::Inside;
use crate::lease::Lease;
use crate::state::Lost;

pin_project! {
    /// The body of a section under its lease; or why there is none.
    ///
    /// The loss is asked for first, so that a body is never resumed after one that was already
    /// visible, and the body is dropped inside the `poll` that sees it. Without a `lost` to ask, a
    /// body runs to its end.
    #[must_use = "futures do nothing unless polled"]
    pub(crate) struct Running<'s, B> {
        pub(crate) grant: Grant<'s>,
        #[pin]
        pub(crate) lost: Option<Lost<'s>>,
        #[pin]
        pub(crate) body: Option<B>,
    }
}

/// The lease, or the failure until it is told.
pub(crate) type Grant<'s> = Result<&'s Lease, Option<Box<LockError>>>;

impl<B: Future> Future for Running<'_, B> {
    type Output = Result<B::Output, LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let body: Option<Pin<&mut dyn Future<Output = B::Output>>> =
            match this.body.as_mut().as_pin_mut() {
                Some(body) => Some(body),
                None => None,
            };
        let outcome = poll_body(this.grant, this.lost.as_pin_mut(), body, cx);
        if outcome.is_ready() {
            this.body.set(None);
        }
        outcome
    }
}

/// One poll of a body, which is not generic over it: a program has many.
fn poll_body<T>(
    grant: &mut Grant<'_>,
    lost: Option<Pin<&mut Lost<'_>>>,
    body: Option<Pin<&mut (dyn Future<Output = T> + '_)>>,
    cx: &mut Context<'_>,
) -> Poll<Result<T, LockError>> {
    const OVER: &str = "a section must not be polled after its end";
    let lease = match grant {
        Ok(lease) => lease,
        Err(error) => return Poll::Ready(Err(*error.take().expect(OVER))),
    };
    let body = body.expect(OVER);
    if let Some(Poll::Ready(loss)) = lost.map(|lost| lost.poll(cx)) {
        return Poll::Ready(Err(loss.into()));
    }
    let _inside = Inside::of(lease.state());
    body.poll(cx).map(Ok)
}
