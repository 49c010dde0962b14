//! The last steps of the first in the queue: what must be true of a grant, and the grant.

use std::sync::Arc;
use std::time::Instant;

use fenced_core::{FencingToken, Lease, Queue};

use super::{Contender, Next};
use crate::heartbeat::{self, Checked};
use crate::holder::{self, Grant};
use crate::refusal::Refusal;
use crate::removal;
use crate::session::Held;

impl Contender<'_> {
    /// Makes the token, and sure that the session was alive a moment ago; says what to do instead
    /// if it was not.
    pub(super) async fn prepare(&mut self) -> Result<FencingToken, Next> {
        let token = match self.session.token(self.node.czxid).await {
            Ok(token) => token,
            Err(refusal) => return Err(self.refuse(&refusal)),
        };
        if let Some(seen) = self.floor.filter(|floor| token <= *floor) {
            return Err(self.refuse(&Refusal::Regressed { token, seen }));
        }
        let proven = self.session.proven();
        self.sent = proven.map_or(self.sent, |proven| proven.max(self.sent));
        if self.sent.elapsed() > self.session.timeout() / 3 {
            self.prove().await?;
        }
        if self.session.is_disturbed(self.epoch) {
            return Err(Next::List);
        }
        Ok(token)
    }

    async fn prove(&mut self) -> Result<(), Next> {
        let sent = Instant::now();
        let nodes = [Arc::clone(&self.node.path)];
        let checked = heartbeat::check(self.session, &nodes);
        match self.session.answer(checked).await {
            Ok(()) => {
                self.session.prove(sent);
                self.sent = sent;
                Ok(())
            }
            Err(Checked::Gone(_)) => Err(Next::Gone),
            Err(Checked::Unknown) => {
                self.session.settled().await;
                Err(Next::List)
            }
        }
    }

    pub(super) fn grant(self, token: FencingToken, label: String) -> Option<Grant> {
        let Some(answer) = self.serving.take() else {
            self.leave();
            return None;
        };
        let path = self.serving.key().path.clone();
        let (handle, released) = holder::handle();
        let deadline = self.sent + self.session.lease_span();
        let (lease, control) = Lease::grant(path, token, deadline, handle);
        if self.revoke_asked {
            control.ask_to_release();
        }
        let held = Held {
            lease: control.clone(),
            proven: self.sent,
        };
        self.session.hold(&self.node.path, held);
        self.session.marks.granted(token);
        self.serving.saw(Queue::default().ahead(1).holder(label));
        // Whoever has gone meanwhile drops the lease, and so frees the lock.
        drop(answer.send(Ok(lease)));
        Some(Grant {
            node: self.node,
            watch: self.watch,
            lease: control,
            released,
        })
    }

    pub(super) fn leave(self) {
        removal::remove(self.session, self.node, Some(self.watch), None);
    }
}
