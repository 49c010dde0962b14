use std::str::FromStr;

use fenced::{LockError, SinkError};

use crate::args::Args;
use crate::event::Event;
use crate::shop::{Order, OrderError, Shop};
use crate::stall::Stalling;
use crate::stock::Stock;
use crate::world::{self, Failure};

/// What a worker process is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Stop inside the first write, and go on regardless.
    StopInsideWrite,
    /// Stop after the stock was read.
    StopBetweenSteps,
    /// Sell twice.
    SellTwice,
}

impl Plan {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::StopInsideWrite => "stop-inside-write",
            Self::StopBetweenSteps => "stop-between-steps",
            Self::SellTwice => "sell-twice",
        }
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [
            Self::StopInsideWrite,
            Self::StopBetweenSteps,
            Self::SellTwice,
        ]
        .into_iter()
        .find(|plan| plan.name() == name)
        .ok_or_else(|| format!("no plan `{name}`"))
    }
}

/// Carries out the plan, and tells the narrator what becomes of it.
pub(crate) async fn work(args: &Args, name: &str, plan: Plan) -> Result<(), Failure> {
    let sku = args.sku.clone().ok_or("a worker needs --sku")?;
    // Also between the announcement of a stop and the stop itself.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let (locks, stock) = (world::locks(args, name).await?, world::stock(args).await?);
    let order = |number: u32| Order {
        id: format!("{sku}/{name}/{}/{number}", std::process::id()),
        sku: sku.clone(),
        quantity: 1,
    };
    match plan {
        Plan::StopInsideWrite => {
            let sales = Box::new(Stalling::new(stock.sales));
            let stock = Stock { sales, ..stock };
            let shop = Shop { locks, stock };
            report(shop.sell_whatever_happens(&order(1)).await);
        }
        Plan::StopBetweenSteps => {
            let shop = Shop { locks, stock };
            report(shop.sell_and_stop_between(&order(1)).await);
        }
        Plan::SellTwice => {
            let shop = Shop { locks, stock };
            report(shop.sell(&order(1)).await);
            report(shop.sell(&order(2)).await);
        }
    }
    Ok(())
}

/// A sale that succeeded has told so itself.
fn report(sold: Result<i64, OrderError>) {
    let Err(error) = sold else { return };
    let event = match error {
        OrderError::Sink(SinkError::Stale { mine, current }) => Event::RefusedByResource {
            mine: mine.get(),
            current: current.get(),
        },
        OrderError::Lock(LockError::Lost(loss)) | OrderError::Sink(SinkError::Lost(loss)) => {
            Event::RefusedByGuard {
                token: loss.token.get(),
                reason: loss.reason.to_string(),
            }
        }
        other => Event::Failed {
            reason: other.to_string(),
        },
    };
    event.tell();
}
