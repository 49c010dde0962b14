//! The clock that all processes of one start of a machine share.
//!
//! It is never set, so that a lease is as long for the one who holds it as for the one who waits
//! for its end. Its values mean nothing after the next start, nor in another time namespace.

use std::time::Duration;

use fenced_core::BoxError;
use rustix::time::{ClockId, clock_gettime};

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
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec)
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
    use super::*;

    #[test]
    fn one_machine_is_always_the_same_and_its_clock_moves_on() {
        assert_eq!(Machine::this().unwrap(), Machine::this().unwrap());
        let before = now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(now() - before >= 2_000_000);
    }
}
