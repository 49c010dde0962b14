// Wanted: tokens from the clock, which two processes read differently.
use std::time::{SystemTime, UNIX_EPOCH};

use fenced::FencingToken;

fn next_token() -> FencingToken {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis()
}

fn main() {
    next_token();
}
