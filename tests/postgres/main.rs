//! `fenced-postgres` against a real server.

mod conformance;
mod database;

use fenced_tests as _;
