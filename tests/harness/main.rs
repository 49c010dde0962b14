//! The harness against real servers.

use fenced_tests as _;
