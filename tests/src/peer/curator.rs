//! The Java program `tests/peers/curator`, compiled when it has changed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::{folder, installed};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/curator/Peer.java");

pub(super) fn command(address: &str) -> io::Result<Command> {
    let jars = installed::curator_class_path()?;
    let classes = compiled(&jars)?;
    let mut command = Command::new(installed::java()?);
    command
        .args([
            "-XX:+UseSerialGC",
            "-Xmx256m",
            "-Djava.net.preferIPv4Stack=true",
        ])
        .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        .arg("-cp")
        .arg(format!("{}:{jars}", classes.display()))
        .args(["Peer", address]);
    Ok(command)
}

/// The folder of the compiled program.
fn compiled(jars: &str) -> io::Result<PathBuf> {
    let classes = folder::target().join("peers/curator");
    fs::create_dir_all(&classes)?;
    let alone = File::create(classes.join("lock"))?;
    alone.lock()?;
    let (source, class) = (Path::new(SOURCE), classes.join("Peer.class"));
    if !class.exists() || changed(&class)? < changed(source)? {
        compile(source, jars, &classes)?;
    }
    Ok(classes)
}

fn changed(file: &Path) -> io::Result<std::time::SystemTime> {
    file.metadata()?.modified()
}

fn compile(source: &Path, jars: &str, classes: &Path) -> io::Result<()> {
    let compiler = std::process::Command::new(installed::javac()?)
        .args(["-proc:none", "-cp", jars, "-d"])
        .arg(classes)
        .arg(source)
        .output()?;
    if compiler.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&compiler.stderr);
    Err(io::Error::other(format!("{SOURCE}: {said}")))
}
