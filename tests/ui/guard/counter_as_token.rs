// Wanted: tokens from a counter in memory, which starts anew with the process.
use std::sync::atomic::{AtomicU64, Ordering};

use fenced::Fence;

static NEXT: AtomicU64 = AtomicU64::new(1);

fn main() {
    let _ = Fence::new("/stock/4711", NEXT.fetch_add(1, Ordering::Relaxed));
}
