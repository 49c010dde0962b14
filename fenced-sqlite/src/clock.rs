//! The clock that all processes of one start of a machine share.
//!
//! It is never set, and it is the one that [`Instant`](std::time::Instant) reads, so that a lease is as long for the one who holds it as for the one who waits
//! for its end. Its values mean nothing after the next start, nor in another time namespace.

use std::time::Duration;

use fenced_core::BoxError;
use nix::time::{ClockId, clock_gettime};

/// Apple's `CLOCK_MONOTONIC` runs on while the machine sleeps, and `Instant` does not: after a
/// sleep a lease would be over in the file, and not for its holder.
#[cfg(target_vendor = "apple")]
const CLOCK: ClockId = ClockId::from_raw(nix::libc::CLOCK_UPTIME_RAW);
#[cfg(not(target_vendor = "apple"))]
const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// Which clock [`now`] reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Which start of which machine.
    pub(crate) boot: String,
    /// Which time namespace; the same text everywhere on systems without them.
    pub(crate) time_namespace: String,
}

/// Nanoseconds since some moment of this start of the machine.
pub(crate) fn now() -> i64 {
    let time = clock_gettime(CLOCK).expect("a clock that every Unix system has");
    nanos(time.into())
}

/// A length of time in the unit of [`now`].
pub(crate) fn nanos(length: Duration) -> i64 {
    i64::try_from(length.as_nanos()).unwrap_or(i64::MAX / 2)
}

impl Machine {
    #[cfg(target_os = "linux")]
    pub(crate) fn this() -> Result<Self, BoxError> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let time_namespace = match std::fs::read_link("/proc/self/ns/time") {
            Ok(name) => name.to_string_lossy().into_owned(),
            // Kernels before 5.6 have no time namespaces.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.into()),
        };
        Self::of(&boot, time_namespace)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn this() -> Result<Self, BoxError> {
        let output = std::process::Command::new("/usr/sbin/sysctl")
            .args(["-n", "kern.bootsessionuuid"])
            .output()?;
        Self::of(&String::from_utf8(output.stdout)?, String::new())
    }

    fn of(boot: &str, time_namespace: String) -> Result<Self, BoxError> {
        match boot.trim() {
            "" => Err("its identity is empty".into()),
            boot => Ok(Self {
                boot: boot.to_owned(),
                time_namespace,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn one_machine_is_always_the_same() {
        assert_eq!(Machine::this().unwrap(), Machine::this().unwrap());
    }

    #[test]
    fn the_clock_moves_as_instants_do() {
        let read = || (Instant::now(), now(), Instant::now());
        let first = read();
        std::thread::sleep(Duration::from_millis(20));
        let last = read();
        let moved = last.1 - first.1;
        assert!(moved >= nanos(last.0 - first.2));
        assert!(moved <= nanos(last.2 - first.0));
    }
}
