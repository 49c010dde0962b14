//! A gateway to a valve takes commands only from the holder of the valve's lock. One operator is
//! stopped before her command is sent, for longer than her lease, and another one takes over. Then
//! the first one goes on, sends her command, and may do no harm.
//!
//! ```text
//! cargo run --example http_gateway --features http,http-server
//! ```

mod event;
mod gateway;
mod operator;
mod story;

use std::error::Error;
use std::process::ExitCode;

use lexopt::Arg::{Long, Short};
use lexopt::ValueExt as _;

use operator::{Operator, Plan};

type Failure = Box<dyn Error + Send + Sync>;

const USAGE: &str = "\
Usage: http_gateway [--json]
  --json   end with the figures in one line of JSON";

/// What the command line says; an operator is a process that the story starts.
enum Args {
    Story { json: bool },
    Operator(Operator),
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match read() {
        Ok(Args::Story { json }) => story::tell(json).await,
        Ok(Args::Operator(operator)) => operator.work().await.map(|()| true),
        Err(error) => {
            eprintln!("http_gateway: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("http_gateway: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read() -> Result<Args, Failure> {
    let mut parser = lexopt::Parser::from_env();
    let mut json = false;
    let (mut name, mut plan, mut folder, mut gateway) = (None, None, None, None);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("json") => json = true,
            Long("operator") => name = Some(parser.value()?.string()?),
            Long("plan") => plan = Some(parser.value()?.parse::<Plan>()?),
            Long("folder") => folder = Some(parser.value()?.into()),
            Long("gateway") => gateway = Some(parser.value()?.string()?),
            Long("help") | Short('h') => {
                println!("{USAGE}");
                std::process::exit(0);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    match (name, plan, folder, gateway) {
        (Some(name), Some(plan), Some(folder), Some(gateway)) => Ok(Args::Operator(Operator {
            name,
            plan,
            folder,
            gateway,
        })),
        (None, None, None, None) => Ok(Args::Story { json }),
        _ => Err("an operator needs a name, a plan, a folder and a gateway".into()),
    }
}
