use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// Sends two statements without waiting between them; each is sent by its future's first poll.
///
/// The second is not sent if the first could not be, or has failed by then.
pub(crate) async fn in_order<A, B, E>(
    first: impl Future<Output = Result<A, E>>,
    second: impl Future<Output = Result<B, E>>,
) -> (Result<A, E>, Option<Result<B, E>>) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut answered, mut answered_second, mut sent) = (None, None, false);
    poll_fn(|context| {
        if answered.is_none() {
            answered = ready(first.as_mut(), context);
            if !sent && matches!(answered, Some(Err(_))) {
                return Poll::Ready(());
            }
        }
        if answered_second.is_none() {
            answered_second = ready(second.as_mut(), context);
            sent = true;
        }
        if answered.is_some() && answered_second.is_some() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    (answered.expect("the first was answered"), answered_second)
}

fn ready<F: Future>(future: Pin<&mut F>, context: &mut Context<'_>) -> Option<F::Output> {
    match future.poll(context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Sends a statement without waiting for its answer: what is sent after it runs after it.
pub(crate) fn send(statement: impl Future) {
    // A single poll sends; an error would mean that the connection is gone, and all with it.
    let _ = pin!(statement).poll(&mut Context::from_waker(Waker::noop()));
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Notes when it is polled first, and answers with its second poll.
    async fn statement(name: &'static str, sent: &RefCell<Vec<&'static str>>) -> Result<(), ()> {
        sent.borrow_mut().push(name);
        tokio::task::yield_now().await;
        Ok(())
    }

    #[tokio::test]
    async fn the_second_is_sent_before_the_first_is_answered() {
        let sent = RefCell::new(Vec::new());
        let both = in_order(statement("first", &sent), statement("second", &sent));
        {
            let mut both = pin!(both);
            let polled = both.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
            assert_eq!(*sent.borrow(), ["first", "second"]);
            assert_eq!(both.await, (Ok(()), Some(Ok(()))));
        }
    }

    #[tokio::test]
    async fn the_second_is_not_sent_after_a_first_that_fails_at_once() {
        let sent = RefCell::new(Vec::new());
        let both = in_order(async { Err::<(), ()>(()) }, statement("second", &sent));
        assert_eq!(both.await, (Err(()), None));
        assert!(sent.borrow().is_empty());
    }

    #[test]
    fn sending_polls_once() {
        let sent = RefCell::new(Vec::new());
        send(statement("only", &sent));
        assert_eq!(*sent.borrow(), ["only"]);
    }
}
