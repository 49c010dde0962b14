use std::time::Instant;

use crate::event::{Event, Place};

/// Prints what happens, as it happens.
pub(crate) struct Timeline {
    started: Instant,
}

impl Timeline {
    pub(crate) fn start() -> Self {
        let started = Instant::now();
        Self { started }
    }

    pub(crate) fn heading(&self, text: &str) {
        println!("\n{text}\n");
        println!("   time  who       token  what");
    }

    pub(crate) fn narrate(&self, text: &str) {
        self.line("", "", text);
    }

    pub(crate) fn show(&self, who: &str, event: &Event) {
        let (token, text) = describe(event);
        let token = token.map(|token| token.to_string()).unwrap_or_default();
        self.line(who, &token, &text);
    }

    fn line(&self, who: &str, token: &str, text: &str) {
        let time = self.started.elapsed().as_secs_f32();
        println!("{time:6.2}s  {who:<6} {token:>8}  {text}");
    }
}

fn describe(event: &Event) -> (Option<i64>, String) {
    match event {
        Event::Granted { token } => (
            Some(*token),
            "holds the lock, and has raised the fence to its token".to_owned(),
        ),
        Event::Read { token, count } => (Some(*token), format!("reads the stock: {count}")),
        Event::Stopping { token, place } => {
            let text = match place {
                Place::InsideWrite => {
                    "is stopped: the guard said yes, and not a byte has been sent"
                }
                Place::BetweenSteps => "is stopped between two steps",
            };
            (Some(*token), text.to_owned())
        }
        Event::Sold {
            token,
            quantity,
            left,
        } => (Some(*token), format!("sells {quantity}: {left} left")),
        Event::RefusedByResource { mine, current } => (
            Some(*mine),
            format!(
                "is REFUSED BY THE DATABASE, which has seen token {current}: the late write did nothing"
            ),
        ),
        Event::RefusedByGuard { token, reason } => (
            Some(*token),
            format!("is REFUSED BY ITS GUARD, and sends nothing: {reason}"),
        ),
        Event::Failed { reason } => (None, format!("FAILS: {reason}")),
    }
}
