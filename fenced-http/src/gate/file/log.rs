//! The file itself: a line for each batch, of a checksum and the batch's entries.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::GateEntry;
use crate::gate::file::FileStoreError;
use crate::gate::ledger::Ledger;

/// A file is not rewritten before it has so many bytes, and this many times as many as after the
/// last time.
const WORTHWHILE: u64 = 1 << 20;
const GROWTH: u64 = 4;
/// Entries of a line, when it is rewritten.
const LINE: usize = 1_000;
const CHECKSUM: usize = 16;

pub(super) struct Log {
    path: PathBuf,
    file: File,
    bytes: u64,
    rewritten: u64,
}

impl Log {
    pub(super) fn open(path: &Path) -> Result<Self, FileStoreError> {
        let fail = |source| FileStoreError::Io {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(path).map_err(fail)?;
        let mut log = Self {
            path: path.to_owned(),
            file,
            bytes: 0,
            rewritten: 0,
        };
        let (entries, whole) = log.read()?;
        log.cut(whole).map_err(fail)?;
        if !entries.is_empty() {
            log.rewrite(entries).map_err(fail)?;
        }
        Ok(log)
    }

    pub(super) fn entries(&self) -> Result<Vec<GateEntry>, FileStoreError> {
        self.read().map(|(entries, _)| entries)
    }

    /// One write and one `fsync`, so that only the last line can be cut off.
    pub(super) fn append(&mut self, entries: &[GateEntry]) -> io::Result<()> {
        let line = line(entries)?;
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        self.bytes += line.len() as u64;
        if self.bytes > WORTHWHILE.max(self.rewritten * GROWTH) {
            let (entries, _) = self.read().map_err(io::Error::other)?;
            self.rewrite(entries)?;
        }
        Ok(())
    }

    pub(super) fn failed(&self) -> FileStoreError {
        FileStoreError::Failed {
            path: self.path.clone(),
        }
    }

    /// The entries, and how many bytes of the file hold them.
    fn read(&self) -> Result<(Vec<GateEntry>, u64), FileStoreError> {
        let content = fs::read(&self.path).map_err(|source| FileStoreError::Io {
            path: self.path.clone(),
            source,
        })?;
        let (mut entries, mut whole, mut damaged) = (Vec::new(), 0, None);
        for (number, line) in (1..).zip(content.split_inclusive(|b| *b == b'\n')) {
            match (entries_of(line), damaged) {
                (Some(more), None) => {
                    entries.extend(more);
                    whole += line.len() as u64;
                }
                (Some(_), Some(line)) => {
                    return Err(FileStoreError::Damaged {
                        path: self.path.clone(),
                        line,
                    });
                }
                (None, _) => damaged = damaged.or(Some(number)),
            }
        }
        Ok((entries, whole))
    }

    /// Drops what was cut off in the middle of a write.
    fn cut(&mut self, whole: u64) -> io::Result<()> {
        let bytes = self.file.metadata()?.len();
        if bytes > whole {
            let (path, dropped) = (self.path.display(), bytes - whole);
            tracing::warn!(%path, dropped, "the last write was cut off, and is dropped");
            self.file.set_len(whole)?;
        }
        self.file.sync_all()?;
        self.bytes = whole;
        sync_folder(&self.path)
    }

    /// Replaces the file by one that says the same with fewer entries.
    fn rewrite(&mut self, entries: Vec<GateEntry>) -> io::Result<()> {
        let new = beside(&self.path, "new");
        let mut file = File::create(&new)?;
        let mut bytes = 0;
        for entries in Ledger::of(entries).into_entries().chunks(LINE) {
            let line = line(entries)?;
            file.write_all(&line)?;
            bytes += line.len() as u64;
        }
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        sync_folder(&self.path)?;
        // It was opened for writing, and stands at its end.
        self.file = file;
        (self.bytes, self.rewritten) = (bytes, bytes);
        Ok(())
    }
}

/// The file `NAME.extension` beside `NAME`.
pub(super) fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(extension);
    name.into()
}

/// A file that was created or renamed is there after a loss of power once its folder is synced.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

fn line(entries: &[GateEntry]) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(entries)?;
    let mut line = checksum(&json).into_bytes();
    line.push(b' ');
    line.extend_from_slice(&json);
    line.push(b'\n');
    Ok(line)
}

fn entries_of(line: &[u8]) -> Option<Vec<GateEntry>> {
    let line = line.strip_suffix(b"\n")?;
    let (sum, json) = line.split_at_checked(CHECKSUM)?;
    let json = json.strip_prefix(b" ")?;
    if sum != checksum(json).as_bytes() {
        return None;
    }
    serde_json::from_slice(json).ok()
}

fn checksum(json: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(json).into();
    let first = u64::from_be_bytes(digest[..8].try_into().expect("eight bytes"));
    format!("{first:016x}")
}
