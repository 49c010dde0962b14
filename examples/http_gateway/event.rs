use serde::{Deserialize, Serialize};

/// What an operator tells the story, one line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) token: i64,
    pub(crate) what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// The lock is hers, and the gateway has raised its fence.
    Granted,
    /// The valve is open so far.
    Seen { percent: u8 },
    /// She is about to send a command.
    Commanding { percent: u8 },
    /// The process is about to stop itself.
    Stopping,
    /// The gateway has carried the command out.
    Done { percent: u8 },
    /// The gateway had carried it out before, and says so again.
    Replayed { percent: u8 },
    /// The gateway has seen a newer token.
    Refused { current: i64 },
    /// Anything else, which should not happen here.
    Failed { reason: String },
}

impl Event {
    /// Tells the story.
    pub(crate) fn tell(token: i64, what: What) {
        let event = Self { token, what };
        println!(
            "{}",
            serde_json::to_string(&event).expect("an event has a JSON form")
        );
    }

    pub(crate) fn text(&self) -> String {
        match &self.what {
            What::Granted => "has the lock, and the gateway heeds no older holder any more".into(),
            What::Seen { percent } => format!("sees the valve {percent} % open"),
            What::Commanding { percent } => format!("is about to command {percent} %"),
            What::Stopping => "is stopped: the guard said yes, and not a byte has been sent".into(),
            What::Done { percent } => format!("is answered 200: the valve is {percent} % open"),
            What::Replayed { percent } => format!(
                "repeats the command, as after a lost answer, and gets the old one: {percent} %"
            ),
            What::Refused { current } => format!(
                "is answered 412: THE GATEWAY REFUSES the late command, since it has seen token \
                 {current}; the valve does not move"
            ),
            What::Failed { reason } => format!("FAILS: {reason}"),
        }
    }
}
