//! Where a server keeps its data.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use tempfile::TempDir;

/// The folder of everything that is built.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
        PathBuf::from,
    )
}

/// The folder under `target/` in which every server of a run has its own.
pub(crate) fn servers_folder() -> PathBuf {
    target().join("servers")
}

/// A new folder for the data of `server`, removed when dropped.
pub(crate) fn for_server(server: &str) -> io::Result<TempDir> {
    let parent = servers_folder();
    fs::create_dir_all(&parent)?;
    named(server).tempdir_in(parent.canonicalize()?)
}

/// The same outside `target/`, for a user who cannot enter that.
pub(crate) fn outside_target(server: &str) -> io::Result<TempDir> {
    named(server).tempdir()
}

fn named(server: &str) -> tempfile::Builder<'_, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.permissions(fs::Permissions::from_mode(0o700));
    builder.prefix(server);
    builder
}
