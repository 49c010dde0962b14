// Wanted: a price in a hole, by way of a newtype.
use fenced::prelude::*;

#[derive(LockSegment)]
struct Price(f64);

fn main() {}
