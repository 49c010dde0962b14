use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// A number that no other process is likely to have.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Between a half and the whole of `longest`.
pub(crate) fn jittered(longest: Duration) -> Duration {
    let share = u32::try_from(random() >> 32).unwrap_or_default();
    let half = longest / 2;
    half + half.mul_f64(f64::from(share) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_never_longer_than_told_and_never_shorter_than_half() {
        let longest = Duration::from_millis(20);
        for _ in 0..1_000 {
            assert!((longest / 2..=longest).contains(&jittered(longest)));
        }
    }
}
