//! The Python program `tests/peers/kazoo`, in the environment that `tests/install` makes.

use std::io;

use tokio::process::Command;

use crate::{folder, installed};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/kazoo/peer.py");

pub(super) fn command(address: &str) -> io::Result<Command> {
    let python = folder::target().join("peers/kazoo/bin/python");
    if !python.exists() {
        return Err(installed::missing("Kazoo"));
    }
    let mut command = Command::new(python);
    command.args([SOURCE, address]);
    Ok(command)
}
