//! RTT inflation: the distance of recent RTTs from the lowest of a longer window. On a bottleneck, this is bufferbloat.

use std::time::{Duration, Instant};

use pping_common::{
    abi::Tally,
    hist::{self, BINS},
};

use super::minimum::Minimum;
use crate::aggregate::{Range, join, rtt_at};

/// Recent samples are kept in two halves of this length, the older of which is dropped at a time: between half a minute and
/// a minute.
const HALF: Duration = Duration::from_secs(30);

/// The window of the lowest recent RTT.
const RECENT: Duration = Duration::from_mins(1);

/// Recent RTTs of a series, and the lowest of a longer window.
#[derive(Debug)]
pub(super) struct Inflation {
    baseline: Minimum,
    recent: Minimum,
    began: Instant,
    /// The present half, and the one before it.
    halves: [Half; 2],
}

/// The RTTs of a half.
#[derive(Clone, Debug)]
struct Half {
    bins: Box<[u32; BINS]>,
    range: Range,
}

/// The gauges of a series, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inflated {
    /// The lowest RTT of the last minute.
    pub(super) minimum: Option<u64>,
    /// The lowest RTT of the longer window.
    pub(super) baseline: Option<u64>,
    /// The percentiles of the last minute above the baseline.
    pub(super) above: Option<[u64; 2]>,
}

/// The percentiles in [`Inflated::above`].
pub(super) const PERCENTILES: [u64; 2] = [50, 95];

impl Inflation {
    /// No samples; `baseline` is the longer window.
    pub(super) fn new(baseline: Duration, now: Instant) -> Self {
        let half = Half { bins: Box::new([0; BINS]), range: None };
        Self {
            baseline: Minimum::new(baseline, now),
            recent: Minimum::new(RECENT, now),
            began: now,
            halves: [half.clone(), half],
        }
    }

    /// Changes the longer window.
    pub(super) fn set_baseline(&mut self, baseline: Duration) {
        self.baseline.set_window(baseline);
    }

    /// Adds the samples of a tally.
    pub(super) fn add(&mut self, tally: &Tally, now: Instant) {
        let (Some(min), Some(max)) = (tally.min(), tally.max()) else { return };
        self.roll(now);
        self.baseline.add(min, now);
        self.recent.add(min, now);
        let half = &mut self.halves[0];
        half.range = join(half.range, Some((min, max)));
        for (sum, &count) in half.bins.iter_mut().zip(&tally.bins) {
            *sum = sum.saturating_add(count);
        }
    }

    /// The values at `now`.
    pub(super) fn report(&mut self, now: Instant) -> Inflated {
        self.roll(now);
        let baseline = self.baseline.lowest(now);
        let above =
            baseline.zip(self.percentiles()).map(|(low, rtts)| rtts.map(|rtt| rtt.saturating_sub(low)));
        Inflated { minimum: self.recent.lowest(now), baseline, above }
    }

    /// The percentiles of both halves, ns.
    fn percentiles(&self) -> Option<[u64; 2]> {
        let [one, other] = &self.halves;
        let range @ (lowest, highest) = join(one.range, other.range)?;
        let bins = hist::bin(lowest)..=hist::bin(highest);
        let bins = bins.map(|bin| (bin, u64::from(one.bins[bin]) + u64::from(other.bins[bin])));
        let total: u64 = bins.clone().map(|(_, count)| count).sum();
        Some(PERCENTILES.map(|percentile| {
            let rank = (total * percentile).div_ceil(100).max(1);
            rtt_at(rank, bins.clone(), range)
        }))
    }

    fn roll(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.began);
        if age < HALF {
            return;
        }
        self.halves.swap(0, 1);
        self.halves[0].clear();
        if age >= 2 * HALF {
            self.halves[1].clear();
            self.began = now;
        } else {
            self.began += HALF;
        }
    }
}

impl Half {
    fn clear(&mut self) {
        self.bins.fill(0);
        self.range = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn tally(rtts: impl IntoIterator<Item = u64>) -> Tally {
        let mut tally = Tally::EMPTY;
        rtts.into_iter().for_each(|rtt| tally.sample(rtt));
        tally
    }

    #[test]
    fn a_filling_buffer_shows_as_inflation() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut inflation = Inflation::new(Duration::from_mins(10), start);
        assert_eq!(inflation.report(start), Inflated::default());
        inflation.add(&tally([20 * MS; 100]), start);
        assert_eq!(inflation.report(start).above, Some([0, 0]));
        for second in 60..120 {
            inflation.add(&tally((100..200).map(|ms| ms * MS)), at(second));
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
        inflation.add(&tally([20 * MS]), start);
        inflation.add(&tally([80 * MS]), at(35));
        let [median, p95] = inflation.report(at(59)).above.unwrap();
        assert!(median < 2 * MS && p95 > 55 * MS, "a half each: {median} {p95}");
        assert_eq!(inflation.report(at(61)).above, Some([60 * MS; 2]), "the first half is over");
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
            inflation.add(&tally([rtt]), start);
            assert_eq!(inflation.report(start).above, Some([0, 0]), "{rtt}");
        }
    }
}
