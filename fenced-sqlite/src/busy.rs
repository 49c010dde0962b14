//! Waiting for a locked file, and who locks it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::ErrorCode;

/// How long SQLite waits on its own before it asks whether waiting is still worth it.
pub(crate) const SLICE: Duration = Duration::from_millis(10);

pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Repeats `attempt` while the file is locked and `goes_on` agrees.
pub(crate) fn patiently<T>(
    mut goes_on: impl FnMut() -> bool,
    mut attempt: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    loop {
        let started = Instant::now();
        match attempt() {
            Err(error) if is_busy(&error) && goes_on() => {}
            result => return result,
        }
        // Some locks are refused at once, whatever the timeout.
        if started.elapsed() < SLICE / 2 {
            std::thread::sleep(SLICE / 5);
        }
    }
}

/// The processes in whose transaction the file is, where the system tells.
///
/// A writer of a file in WAL mode locks the byte 120 of its `-shm` file.
pub(crate) fn writers(database: &Path) -> Vec<u32> {
    const WRITE_LOCK: u64 = 120;
    let Some(inode) = inode(&beside(database, "-shm")) else {
        return Vec::new();
    };
    let table = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    holders(&table, inode, WRITE_LOCK)
}

/// The path with `suffix` at its end.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Only looks at the file: to open and close it would drop this process's locks on it.
fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| file.ino())
}

/// Reads lines such as `2: POSIX  ADVISORY  WRITE 4711 fd:01:1314 120 120`.
///
/// The device is not compared: some file systems tell another one here than to `stat`.
fn holders(table: &str, inode: u64, byte: u64) -> Vec<u32> {
    table
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, "POSIX", _, "WRITE", pid, file, start, end] = words[..] else {
                return None;
            };
            let covers = start.parse::<u64>().ok()? <= byte
                && end.parse::<u64>().map_or(end == "EOF", |end| byte <= end);
            let is_file = file.rsplit(':').next()?.parse() == Ok(inode);
            let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
            (covers && is_file).then_some(pid)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_who_holds_a_byte_of_a_file() {
        let table = "\
1: POSIX  ADVISORY  WRITE 4711 fd:01:1314 120 120
2: POSIX  ADVISORY  READ  4712 fd:01:1314 123 123
3: POSIX  ADVISORY  WRITE 4713 fd:01:1315 120 120
3: -> POSIX  ADVISORY  WRITE 4714 fd:01:1314 120 120
4: FLOCK  ADVISORY  WRITE 4715 fd:01:1314 0 EOF
5: POSIX  ADVISORY  WRITE -1 fd:01:1314 120 120
6: POSIX  ADVISORY  WRITE 4716 00:2a:1314 0 EOF
broken
";
        assert_eq!(holders(table, 1314, 120), [4711, 4716]);
        assert_eq!(holders(table, 9, 120), [0_u32; 0]);
    }
}
