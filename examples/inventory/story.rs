use std::io::{self, Write as _, stdout};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::args::Args;
use crate::event::Event;
use crate::process::Process;
use crate::shop::{Order, Shop};
use crate::timeline::Timeline;
use crate::worker::Plan;
use crate::world::{self, Failure};

const IN_STOCK: i64 = 10;

/// The longest a story may take: more than a worker waits for the lock.
const PATIENCE: Duration = Duration::from_secs(90);

const PROLOGUE: &str = "\
Two processes, ann and ben, sell one piece at a time: each reads the stock and writes what is left,
under one lock. Each grant of the lock has a token, greater than all before. The database remembers
the greatest that it has seen, the fence, and refuses whoever comes with a smaller one.";

/// What became of the sales.
#[derive(Debug, Default, Serialize)]
struct Figures {
    accepted: u32,
    refused_stale: u32,
    refused_local: u32,
    stock: i64,
    expected_stock: i64,
    #[serde(skip)]
    failed: u32,
}

/// Tells both stories, and says whether the stock is right.
pub(crate) async fn tell(args: &Args) -> Result<bool, Failure> {
    let folder = tempfile::tempdir()?;
    let world = Args {
        zk: args.zk.clone(),
        postgres: args.postgres.clone(),
        folder: Some(folder.path().to_string_lossy().into_owned()),
        sku: Some(fresh_sku()),
        ..Args::default()
    };
    let sku = world.sku.as_deref().unwrap_or_default();
    let shop = Shop {
        locks: world::locks(&world, "narrator").await?,
        stock: world::stock(&world).await?,
    };
    shop.open(&Order {
        id: format!("{sku}/opening"),
        sku: sku.to_owned(),
        quantity: IN_STOCK,
    })
    .await?;
    writeln!(stdout(), "{IN_STOCK} pieces of {sku} in stock.\n{PROLOGUE}")?;

    let timeline = Timeline::start();
    let mut figures = Figures {
        expected_stock: IN_STOCK,
        ..Figures::default()
    };
    Timeline::heading(
        "1. Stopped at the worst moment: only the database can tell that ann is late",
    )?;
    take_over(&world, &timeline, Plan::StopInsideWrite, &mut figures).await?;
    Timeline::heading(
        "2. Stopped anywhere else: ann's guard knows at once that her lease is over",
    )?;
    take_over(&world, &timeline, Plan::StopBetweenSteps, &mut figures).await?;

    figures.stock = shop.stock.shelf.count(sku).await?;
    Ok(figures.conclude(args.json)?)
}

async fn take_over(
    world: &Args,
    timeline: &Timeline,
    plan: Plan,
    figures: &mut Figures,
) -> Result<(), Failure> {
    let story = stop_and_take_over(world, timeline, plan, figures);
    tokio::time::timeout(PATIENCE, story)
        .await
        .unwrap_or_else(|_| {
            let patience = PATIENCE.as_secs();
            Err(format!("the story did not end within {patience} seconds").into())
        })
}

/// Ann is stopped by her plan, ben sells meanwhile, ann goes on.
async fn stop_and_take_over(
    world: &Args,
    timeline: &Timeline,
    plan: Plan,
    figures: &mut Figures,
) -> Result<(), Failure> {
    let mut ann = Process::start(world, "ann", plan)?;
    while let Some(event) = ann.next().await? {
        timeline.show("ann", &event)?;
        figures.count(&event);
        if matches!(event, Event::Stopping { .. }) {
            break;
        }
    }
    ann.is_stopped().await?;

    timeline.narrate("ben queues for the lock; it is his once ann's lease has run out")?;
    let mut ben = Process::start(world, "ben", Plan::SellTwice)?;
    while let Some(event) = ben.next().await? {
        timeline.show("ben", &event)?;
        figures.count(&event);
    }
    ben.finish().await?;

    timeline.narrate("ann is continued, and knows nothing of this")?;
    ann.go_on()?;
    while let Some(event) = ann.next().await? {
        timeline.show("ann", &event)?;
        figures.count(&event);
    }
    ann.finish().await
}

impl Figures {
    fn count(&mut self, event: &Event) {
        match event {
            Event::Sold { quantity, .. } => {
                self.accepted += 1;
                self.expected_stock -= quantity;
            }
            Event::RefusedByResource { .. } => self.refused_stale += 1,
            Event::RefusedByGuard { .. } => self.refused_local += 1,
            Event::Failed { .. } => self.failed += 1,
            Event::Granted { .. }
            | Event::Read { .. }
            | Event::Writing { .. }
            | Event::Stopping { .. } => {}
        }
    }

    fn conclude(&self, json: bool) -> io::Result<bool> {
        let right = self.stock == self.expected_stock && self.failed == 0;
        writeln!(
            stdout(),
            "\n{} sold, {} late write refused by the database, {} by a guard.",
            self.accepted,
            self.refused_stale,
            self.refused_local
        )?;
        let verdict = if right { "right" } else { "WRONG" };
        writeln!(
            stdout(),
            "{} in stock, {} expected: {verdict}.",
            self.stock,
            self.expected_stock
        )?;
        if json {
            let line = serde_json::to_string(self).expect("figures have a JSON form");
            writeln!(stdout(), "{line}")?;
        }
        Ok(right)
    }
}

/// A product of its own for each run: a resource on a server remembers its tokens for ever.
fn fresh_sku() -> String {
    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    format!("sku-{nanos:x}")
}
