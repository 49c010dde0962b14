// Wanted: a token of one's own choice.
use std::num::NonZeroI64;

use fenced::FencingToken;

fn main() {
    let _ = FencingToken(NonZeroI64::MAX);
}
