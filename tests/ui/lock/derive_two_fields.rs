// Wanted: one hole for two values.
use fenced::prelude::*;

#[derive(LockSegment)]
struct Place {
    shop: String,
    shelf: u32,
}

fn main() {}
