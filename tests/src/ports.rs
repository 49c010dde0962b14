//! Free ports of the loopback interface.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Below the ports that outgoing connections take, so that a stopped server finds its own
/// still free when it is started again.
const RANGE: std::ops::Range<u16> = 12_000..32_000;
const ATTEMPTS: u32 = 100;

/// A port nobody listens on.
pub(crate) fn free() -> io::Result<u16> {
    (0..ATTEMPTS)
        .map(|_| random())
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .ok_or_else(|| io::Error::other(format!("no free port among {ATTEMPTS} of {RANGE:?}")))
}

fn random() -> u16 {
    let random = RandomState::new().build_hasher().finish();
    let offset = random % u64::from(RANGE.end - RANGE.start);
    RANGE.start + u16::try_from(offset).expect("the range is one of u16")
}
