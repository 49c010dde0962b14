// Wanted: the name of a variant in a hole.
use fenced::prelude::*;

#[derive(LockSegment)]
enum Kind {
    Small,
    Large,
}

fn main() {}
