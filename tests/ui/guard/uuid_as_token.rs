// Wanted: tokens without a lock service: a UUID is unique, but does not grow.
use fenced::Fence;
use uuid::Uuid;

fn main() {
    let _ = Fence::new("/stock/4711", Uuid::nil());
}
