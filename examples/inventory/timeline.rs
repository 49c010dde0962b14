use std::io::{self, Write as _, stdout};
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

    pub(crate) fn heading(text: &str) -> io::Result<()> {
        writeln!(stdout(), "\n{text}\n\n   time  who       token  what")
    }

    pub(crate) fn narrate(&self, text: &str) -> io::Result<()> {
        self.line("", "", text)
    }

    pub(crate) fn show(&self, who: &str, event: &Event) -> io::Result<()> {
        let (token, text) = describe(event);
        let token = token.map(|token| token.to_string()).unwrap_or_default();
        self.line(who, &token, &text)
    }

    fn line(&self, who: &str, token: &str, text: &str) -> io::Result<()> {
        let time = self.started.elapsed().as_secs_f32();
        writeln!(stdout(), "{time:6.2}s  {who:<6} {token:>8}  {text}")
    }
}

fn describe(event: &Event) -> (Option<i64>, String) {
    let (token, text) = match event {
        Event::Granted { token } => (
            token,
            "has the lock, and raises the fence to its token".into(),
        ),
        Event::Read { token, count } => (token, format!("reads the stock: {count}")),
        Event::Writing { token, left } => (token, format!("is about to write: {left} left")),
        Event::Stopping { token, place } => (token, stopping(*place).into()),
        Event::Sold { token, left, .. } => (token, format!("has sold: {left} left")),
        Event::RefusedByResource { mine, current } => (mine, refused(*current)),
        Event::RefusedByGuard { token, reason } => (
            token,
            format!("is REFUSED BY ITS GUARD, and sends nothing: {reason}"),
        ),
        Event::Failed { reason } => return (None, format!("FAILS: {reason}")),
    };
    (Some(*token), text)
}

fn stopping(place: Place) -> &'static str {
    match place {
        Place::InsideWrite => "is stopped: the guard said yes, and not a byte has been sent",
        Place::BetweenSteps => "is stopped between two steps",
    }
}

fn refused(current: i64) -> String {
    format!(
        "is REFUSED BY THE DATABASE, which has seen token {current}: the late write, which would \
         undo what was sold meanwhile, did nothing"
    )
}
