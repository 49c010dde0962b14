// Wanted: a lock for every method of a type.
use fenced::prelude::*;

#[fenced(lock = "/locks/stock")]
struct Inventory {
    stock: u32,
}

fn main() {}
