use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// A future was dropped before it finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelledAt(
    /// How often it had been polled.
    pub usize,
);

/// Polls `future` at most so often, each time it asks to be, and then drops it.
///
/// Called with 0, 1, 2 and so on until it returns `Ok`, it visits every await point.
///
/// # Errors
/// [`CancelledAt`] if the future was not finished by then.
pub async fn cancel_after<F: Future>(polls: usize, future: F) -> Result<F::Output, CancelledAt> {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(Err(CancelledAt(polled)));
        }
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending if polled == polls => Poll::Ready(Err(CancelledAt(polled))),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
