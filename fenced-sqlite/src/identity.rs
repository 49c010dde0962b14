use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Which file a path named when it was opened.
///
/// SQLite goes on in a file that has lost its name, where nobody else finds what it writes.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// The path names another file than the open one, or none.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{path}` was deleted or replaced while it was in use: put it back, or start the programs that use it again"
)]
pub(crate) struct Replaced {
    path: PathBuf,
}

impl Identity {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        // Only looks: to open and close the file would drop this process's locks on it.
        let file = std::fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: file.dev(),
            inode: file.ino(),
        })
    }

    pub(crate) fn check(&self) -> Result<(), Replaced> {
        match Self::of(&self.path) {
            Ok(now) if (now.device, now.inode) == (self.device, self.inode) => Ok(()),
            _ => Err(Replaced {
                path: self.path.clone(),
            }),
        }
    }
}
