//! Other libraries on the same path, as their own programs: Curator's recipes and Kazoo's.
//!
//! Only Debian packages Curator: on macOS its tests are left out.

mod crowd;
#[cfg(not(target_os = "macos"))]
mod curator;
mod kazoo;
mod setup;
