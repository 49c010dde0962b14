use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use fenced::http::{client_builder, reqwest};
use fenced::prelude::*;
use rustix::process::{Signal, getpid, kill_process};

use crate::Failure;
use crate::event::{Event, What};

/// How long a lease lasts: short, so that the story is.
const LEASE: Duration = Duration::from_secs(2);

/// A process that commands the valve.
pub(crate) struct Operator {
    pub(crate) name: String,
    pub(crate) plan: Plan,
    pub(crate) folder: PathBuf,
    pub(crate) gateway: String,
}

/// What an operator does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Opens the valve by 40 %, and is stopped before the command is sent.
    Stop,
    /// Opens it by 75 %, twice, with one and the same command.
    Command,
}

impl Plan {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Command => "command",
        }
    }

    fn percent(self) -> u8 {
        match self {
            Self::Stop => 40,
            Self::Command => 75,
        }
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut plans = [Self::Stop, Self::Command].into_iter();
        let plan = plans.find(|plan| plan.name() == name);
        plan.ok_or_else(|| format!("no plan `{name}`"))
    }
}

/// What a command needs: the lock of the valve, and the gateway that checks for it.
struct Control {
    locks: SqliteLocks,
    gateway: HttpSink,
    looking: reqwest::Client,
    url: String,
}

impl HasLocks for Control {
    fn locks(&self) -> &dyn LockService {
        &self.locks
    }
}

impl Operator {
    pub(crate) async fn work(self) -> Result<(), Failure> {
        let client = client_builder().build()?;
        let locks = SqliteLocks::builder().lease(LEASE).label(&self.name);
        let control = Control {
            locks: locks.open(self.folder.join("gateway.db")).await?,
            gateway: HttpSink::new(client.clone(), &self.gateway)?,
            looking: client,
            url: format!("{}/valves/7/position", self.gateway),
        };
        control.command("7", self.plan).await
    }
}

impl Control {
    /// With `on_lost = "finish"` the body goes on although the lock is lost: only the gateway
    /// stands in its way.
    #[fenced(lock = "/locks/valves/<valve>", timeout = "60s", on_lost = "finish")]
    async fn command(
        &self,
        guard: FencedGuard<'_>,
        valve: &str,
        plan: Plan,
    ) -> Result<(), Failure> {
        let token = guard.token().get();
        let fenced = guard.fence(&self.gateway);
        fenced.claim().await?;
        Event::tell(token, What::Granted);
        let seen = self.looking.get(&self.url).send().await?.bytes().await?;
        let percent = serde_json::from_slice(&seen)?;
        Event::tell(token, What::Seen { percent });
        let percent = plan.percent();
        Event::tell(token, What::Commanding { percent });
        let command = HttpWrite::post(format!("/valves/{valve}")).json(&percent)?;
        let request = Request::new(format_args!("{}/{token}", plan.name()), &percent);
        if plan == Plan::Command {
            let first = fenced.write(&request, command.clone()).await;
            report(token, first);
            report(token, fenced.write(&request, command).await);
        } else {
            // What `fenced.write` does, with the worst of all pauses in the middle.
            let fence = fenced.fence()?;
            stop_here(token);
            report(token, self.gateway.write(&fence, &request, command).await);
        }
        Ok(())
    }
}

/// Stops this process until somebody continues it.
fn stop_here(token: i64) {
    Event::tell(token, What::Stopping);
    kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
}

fn report(token: i64, written: Result<Outcome<fenced::http::HttpAnswer>, SinkError>) {
    let what = match written {
        Ok(outcome) => match (outcome.is_replayed(), outcome.into_answer().json()) {
            (false, Ok(percent)) => What::Done { percent },
            (true, Ok(percent)) => What::Replayed { percent },
            (_, Err(error)) => What::Failed {
                reason: error.to_string(),
            },
        },
        Err(SinkError::Stale { current, .. }) => What::Refused {
            current: current.get(),
        },
        Err(error) => What::Failed {
            reason: error.to_string(),
        },
    };
    Event::tell(token, what);
}
