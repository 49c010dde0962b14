use std::error::Error;

use lexopt::ValueExt as _;

use crate::worker::Plan;

pub(crate) const USAGE: &str = "\
Usage: inventory [--zk HOST:PORT] [--postgres URL] [--json]
  --zk HOST:PORT   take the locks from ZooKeeper (feature `zookeeper`), else from a file
  --postgres URL   keep the stock in PostgreSQL (feature `postgres`), else in a file
  --json           end with the figures in one line of JSON

Servers to try it on: eval \"$(tests/run up)\" sets $FENCED_ZK and $FENCED_POSTGRES";

/// What the command line says.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) zk: Option<String>,
    pub(crate) postgres: Option<String>,
    pub(crate) json: bool,
    pub(crate) role: Role,
    /// The folder of the embedded default, which the narrator makes for its workers.
    pub(crate) folder: Option<String>,
    /// The product that is sold, another one in each run.
    pub(crate) sku: Option<String>,
}

/// Which of the processes this is.
#[derive(Default)]
pub(crate) enum Role {
    #[default]
    Narrator,
    Worker {
        name: String,
        plan: Plan,
    },
}

impl Args {
    pub(crate) fn read() -> Result<Self, Box<dyn Error>> {
        use lexopt::Arg::Long;

        let mut parser = lexopt::Parser::from_env();
        let mut args = Self::default();
        let (mut name, mut plan) = (None, None);
        while let Some(arg) = parser.next()? {
            match arg {
                Long("zk") => args.zk = Some(parser.value()?.string()?),
                Long("postgres") => args.postgres = Some(parser.value()?.string()?),
                Long("json") => args.json = true,
                Long("help") | lexopt::Arg::Short('h') => {
                    println!("{USAGE}");
                    std::process::exit(0);
                }
                Long("folder") => args.folder = Some(parser.value()?.string()?),
                Long("sku") => args.sku = Some(parser.value()?.string()?),
                Long("worker") => name = Some(parser.value()?.string()?),
                Long("plan") => plan = Some(parser.value()?.parse()?),
                other => return Err(other.unexpected().into()),
            }
        }
        match (name, plan) {
            (Some(name), Some(plan)) => args.role = Role::Worker { name, plan },
            (None, None) => {}
            _ => return Err("a worker needs both a name and a plan".into()),
        }
        args.built_for()?;
        Ok(args)
    }

    /// Refuses a server that this build cannot speak to.
    fn built_for(&self) -> Result<(), String> {
        for (asked, built, feature) in [
            (&self.zk, cfg!(feature = "zookeeper"), "zookeeper"),
            (&self.postgres, cfg!(feature = "postgres"), "postgres"),
        ] {
            if asked.is_some() && !built {
                return Err(format!(
                    "built without `{feature}`: run it with `--features {feature}`"
                ));
            }
        }
        Ok(())
    }
}
