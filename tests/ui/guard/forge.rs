// Wanted: a guard without waiting for the lock.
use fenced::FencedGuard;

fn forge<'s>(lease: &'s fenced::Lease) -> FencedGuard<'s> {
    FencedGuard {
        lease,
        brand: std::marker::PhantomData,
    }
}

fn main() {}
