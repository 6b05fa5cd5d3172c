//! RTT inflation: the distance of recent RTTs from the lowest of a longer window. On a bottleneck, this is bufferbloat.

use std::time::{Duration, Instant};

use pping_common::series::SeriesCounts;

use super::{minimum::Minimum, recent::Recent};

/// The window of the lowest recent RTT.
const RECENT: Duration = Duration::from_mins(1);

/// Recent RTTs of a series, and the lowest of a longer window.
#[derive(Debug)]
pub(super) struct Inflation {
    baseline: Minimum,
    lowest: Minimum,
    pub(super) recent: Recent,
}

/// The gauges of a series, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inflated {
    /// The lowest RTT of the last minute.
    pub(super) minimum: Option<u64>,
    /// The lowest RTT of the longer window.
    pub(super) baseline: Option<u64>,
    /// How far the percentiles of the last minute lie above the baseline.
    pub(super) above: Option<[u64; 2]>,
}

/// The percentiles in [`Inflated::above`].
pub(super) const PERCENTILES: [u64; 2] = [50, 95];

impl Inflation {
    /// Creates it without samples; `baseline` is the longer window.
    pub(super) fn new(baseline: Duration, now: Instant) -> Self {
        Self {
            baseline: Minimum::new(baseline, now),
            lowest: Minimum::new(RECENT, now),
            recent: Recent::new(now),
        }
    }

    /// Changes the longer window.
    pub(super) fn set_baseline(&mut self, baseline: Duration) {
        self.baseline.set_window(baseline);
    }

    /// Adds the samples of a second.
    pub(super) fn add(&mut self, counts: &SeriesCounts, now: Instant) {
        self.recent.add(counts, now);
        if let Some(min) = counts.min() {
            self.baseline.add(min, now);
            self.lowest.add(min, now);
        }
    }

    /// Returns the values at `now`.
    pub(super) fn report(&mut self, now: Instant) -> Inflated {
        self.recent.roll(now);
        let baseline = self.baseline.lowest(now);
        let above = baseline
            .zip(self.recent.percentiles(PERCENTILES))
            .map(|(low, rtts)| rtts.map(|rtt| rtt.saturating_sub(low)));
        Inflated { minimum: self.lowest.lowest(now), baseline, above }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn counts(rtts: impl IntoIterator<Item = u64>) -> SeriesCounts {
        let mut counts = SeriesCounts::EMPTY;
        rtts.into_iter().for_each(|rtt| counts.sample(rtt, 0));
        counts
    }

    #[test]
    fn a_filling_buffer_shows_as_inflation() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut inflation = Inflation::new(Duration::from_mins(10), start);
        assert_eq!(inflation.report(start), Inflated::default());
        inflation.add(&counts([20 * MS; 100]), start);
        assert_eq!(inflation.report(start).above, Some([0, 0]));
        for second in 60..120 {
            inflation.add(&counts((100..200).map(|ms| ms * MS)), at(second));
        }
        let Inflated { minimum, baseline, above } = inflation.report(at(120));
        assert_eq!((minimum, baseline), (Some(100 * MS), Some(20 * MS)));
        for (inflated, exact) in above.unwrap().into_iter().zip([129 * MS, 174 * MS]) {
            let error = inflated.abs_diff(exact) as f64 / (exact + 20 * MS) as f64;
            assert!(error < 0.0445, "{inflated} is not {exact}");
        }
    }

    #[test]
    fn old_samples_are_not_reported() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut inflation = Inflation::new(Duration::from_mins(10), start);
        inflation.add(&counts([20 * MS]), start);
        inflation.add(&counts([80 * MS]), at(35));
        let [median, p95] = inflation.report(at(59)).above.unwrap();
        assert!(median < 2 * MS && p95 > 55 * MS, "a half each: {median} {p95}");
        assert_eq!(inflation.report(at(61)).above, Some([60 * MS; 2]), "the first sample is a minute old");
        let report = inflation.report(at(101));
        assert_eq!((report.minimum, report.baseline, report.above), (None, Some(20 * MS), None));
        assert_eq!(inflation.report(at(600)).baseline, Some(20 * MS));
        assert_eq!(inflation.report(at(660)), Inflated::default());
    }

    #[test]
    fn a_single_sample_is_its_own_percentiles() {
        let start = Instant::now();
        for rtt in [0, 1, 999, 5 * MS, 90_000 * MS] {
            let mut inflation = Inflation::new(Duration::from_mins(10), start);
            inflation.add(&counts([rtt]), start);
            assert_eq!(inflation.report(start).above, Some([0, 0]), "{rtt}");
        }
    }
}
