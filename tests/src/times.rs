use std::collections::BTreeMap;
use std::time::Instant;

/// How fast kinds of work are that are done by turns, so that what disturbs the machine disturbs
/// all of them.
#[derive(Debug, Default)]
pub struct Times {
    /// Operations a second, one for each round.
    rates: BTreeMap<&'static str, Vec<f64>>,
}

impl Times {
    /// Measures one round of one kind of work, which consists of so many operations.
    pub async fn take(&mut self, kind: &'static str, operations: u32, work: impl Future) {
        let started = Instant::now();
        work.await;
        let rate = f64::from(operations) / started.elapsed().as_secs_f64();
        self.rates.entry(kind).or_default().push(rate);
    }

    /// Operations a second: the median of the rounds.
    #[must_use]
    pub fn rate(&self, kind: &str) -> f64 {
        median(self.rounds(kind).to_vec())
    }

    /// How much faster one kind is than another: the median of each round's ratio.
    ///
    /// # Panics
    /// If a kind was never measured.
    #[must_use]
    pub fn ratio(&self, kind: &str, plain: &str) -> f64 {
        median(self.ratios(kind, plain))
    }

    /// Prints a line on one kind beside another, and whether it is as fast as wanted; in brackets,
    /// what half of the rounds are within.
    pub fn compare(&self, kind: &str, plain: &str, wanted: f64) {
        let (rate, ratio) = (self.rate(kind), self.ratio(kind, plain));
        let verdict = if ratio >= wanted { "ok" } else { "short" };
        let ratios = sorted(self.ratios(kind, plain));
        let [low, high] = [1, 3].map(|quarter| ratios[ratios.len() * quarter / 4]);
        println!(
            "{kind:<44}{rate:>9.0}/s {ratio:>6.2} [{low:.2} to {high:.2}] of {plain} ({:.0}/s), wanted {wanted:.2}: {verdict}",
            self.rate(plain)
        );
    }

    fn ratios(&self, kind: &str, plain: &str) -> Vec<f64> {
        let rounds = self.rounds(kind).iter().zip(self.rounds(plain));
        rounds.map(|(kind, plain)| kind / plain).collect()
    }

    fn rounds(&self, kind: &str) -> &[f64] {
        let rounds = self.rates.get(kind);
        rounds.unwrap_or_else(|| panic!("`{kind}` was not measured"))
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn median(values: Vec<f64>) -> f64 {
    let values = sorted(values);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_the_rounds() {
        let mut times = Times::default();
        times.rates.insert("plain", vec![100.0, 10.0, 200.0, 40.0]);
        times.rates.insert("fenced", vec![50.0, 8.0, 120.0, 40.0]);
        let near = |left: f64, right: f64| (left - right).abs() < 1e-9;
        assert!(near(times.ratio("fenced", "plain"), 0.7));
        assert!(near(times.rate("plain"), 70.0));
    }
}
