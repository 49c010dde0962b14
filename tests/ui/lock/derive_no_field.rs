// Wanted: the name of a type in a hole.
use fenced::prelude::*;

#[derive(LockSegment)]
struct Everything;

fn main() {}
