//! Starts the servers that the tests share: `servers run -- COMMAND…`, `servers up`, `servers down`.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use fenced_tests::{background, foreground};

const USAGE: &str = "\
Usage: servers run -- COMMAND…   starts what is not set yet, runs the command, stops it again
       servers up                leaves them running and prints their variables
       servers down              stops them";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    match dispatch(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("servers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[OsString]) -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    match words.iter().map(AsRef::as_ref).collect::<Vec<_>>()[..] {
        ["run", "--", _, ..] => Ok(foreground::run(&arguments[2..])?),
        ["up"] => {
            let exports = background::up()?;
            println!("{exports}# to stop them: tests/run down");
            Ok(ExitCode::SUCCESS)
        }
        ["down"] => {
            if background::down()? {
                println!("stopped");
            } else {
                let file = background::state_file();
                println!("nothing was running, as {} says", file.display());
            }
            Ok(ExitCode::SUCCESS)
        }
        // What `up` starts, and nobody else.
        [background::KEEP] => {
            background::keep()?;
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}
