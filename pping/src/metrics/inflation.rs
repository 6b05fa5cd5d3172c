//! How far the RTTs of a series are above what they could be: bufferbloat, as users feel it.

use std::time::{Duration, Instant};

use pping_common::{
    abi::Tally,
    hist::{self, BINS},
};

use super::minimum::Minimum;

/// Half of how long samples are current. They are dropped by halves, so that current is half a minute to a minute.
const HALF: Duration = Duration::from_secs(30);

/// How long the lowest RTT is remembered that is told by itself.
const LATELY: Duration = Duration::from_mins(1);

/// RTTs of the last while, and the lowest of a longer while.
#[derive(Debug)]
pub(super) struct Inflation {
    baseline: Minimum,
    lately: Minimum,
    began: Instant,
    /// The half minute that is under way, and the one before it.
    halves: [Half; 2],
}

/// The distribution of half a minute.
#[derive(Clone, Debug)]
struct Half {
    bins: Box<[u32; BINS]>,
    range: Option<(u64, u64)>,
}

/// What there is to tell of the inflation of a series; all in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inflated {
    /// The lowest RTT of the last minute.
    pub(super) lately: Option<u64>,
    /// The lowest RTT of the time asked for.
    pub(super) baseline: Option<u64>,
    /// How far the median and the 95th percentile of the last minute are above the baseline.
    pub(super) above: Option<[u64; 2]>,
}

/// The percentiles of [`Inflated::above`].
pub(super) const PERCENTILES: [u64; 2] = [50, 95];

impl Inflation {
    /// No sample yet; `baseline` is how long the lowest RTT counts.
    pub(super) fn new(baseline: Duration, now: Instant) -> Self {
        let half = Half { bins: Box::new([0; BINS]), range: None };
        Self {
            baseline: Minimum::new(baseline, now),
            lately: Minimum::new(LATELY, now),
            began: now,
            halves: [half.clone(), half],
        }
    }

    /// Has the lowest RTT count for another time from now on.
    pub(super) fn set_baseline(&mut self, baseline: Duration) {
        self.baseline.set_window(baseline);
    }

    /// Takes what was measured since the last time.
    pub(super) fn take(&mut self, tally: &Tally, now: Instant) {
        let (Some(min), Some(max)) = (tally.min(), tally.max()) else { return };
        self.roll(now);
        self.baseline.take(min, now);
        self.lately.take(min, now);
        let half = &mut self.halves[0];
        let (lowest, highest) = half.range.unwrap_or((min, max));
        half.range = Some((lowest.min(min), highest.max(max)));
        for (sum, &count) in half.bins.iter_mut().zip(&tally.bins) {
            *sum = sum.saturating_add(count);
        }
    }

    /// What there is to tell now.
    pub(super) fn tell(&mut self, now: Instant) -> Inflated {
        self.roll(now);
        let baseline = self.baseline.lowest(now);
        let above =
            baseline.zip(self.percentiles()).map(|(low, rtts)| rtts.map(|rtt| rtt.saturating_sub(low)));
        Inflated { lately: self.lately.lowest(now), baseline, above }
    }

    /// The middles of the bins that have the percentiles, and never outside of what was measured.
    fn percentiles(&self) -> Option<[u64; 2]> {
        let [one, other] = &self.halves;
        let (lowest, highest) = match (one.range, other.range) {
            (Some((min, max)), Some((lower, higher))) => (min.min(lower), max.max(higher)),
            (range, None) | (None, range) => range?,
        };
        let bins = hist::bin(lowest)..=hist::bin(highest);
        let count = |bin: usize| u64::from(one.bins[bin]) + u64::from(other.bins[bin]);
        let total: u64 = bins.clone().map(count).sum();
        Some(PERCENTILES.map(|percentile| {
            let rank = (total * percentile).div_ceil(100).max(1);
            let mut below = 0;
            let bin = bins.clone().find(|&bin| {
                below += count(bin);
                below >= rank
            });
            hist::middle(bin.unwrap_or(*bins.end())).clamp(lowest, highest)
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
    fn a_buffer_that_fills_shows_above_the_baseline() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut inflation = Inflation::new(Duration::from_mins(10), start);
        assert_eq!(inflation.tell(start), Inflated::default());
        inflation.take(&tally([20 * MS; 100]), start);
        assert_eq!(inflation.tell(start).above, Some([0, 0]));
        for second in 60..120 {
            inflation.take(&tally((100..200).map(|ms| ms * MS)), at(second));
        }
        let Inflated { lately, baseline, above } = inflation.tell(at(120));
        assert_eq!((lately, baseline), (Some(100 * MS), Some(20 * MS)));
        for (inflated, exact) in above.unwrap().into_iter().zip([129 * MS, 174 * MS]) {
            let error = inflated.abs_diff(exact) as f64 / (exact + 20 * MS) as f64;
            assert!(error < 0.063, "{inflated} is not {exact}");
        }
    }

    #[test]
    fn what_is_over_is_told_no_more() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut inflation = Inflation::new(Duration::from_mins(10), start);
        inflation.take(&tally([20 * MS]), start);
        inflation.take(&tally([80 * MS]), at(35));
        let [median, p95] = inflation.tell(at(59)).above.unwrap();
        assert!(median < 2 * MS && p95 > 55 * MS, "a half each: {median} {p95}");
        assert_eq!(inflation.tell(at(61)).above, Some([60 * MS; 2]), "the first half is over");
        let told = inflation.tell(at(101));
        assert_eq!((told.lately, told.baseline, told.above), (None, Some(20 * MS), None));
        assert_eq!(inflation.tell(at(600)).baseline, Some(20 * MS));
        assert_eq!(inflation.tell(at(660)), Inflated::default());
    }

    #[test]
    fn a_single_sample_is_its_own_percentiles() {
        let start = Instant::now();
        for rtt in [0, 1, 999, 5 * MS, 90_000 * MS] {
            let mut inflation = Inflation::new(Duration::from_mins(10), start);
            inflation.take(&tally([rtt]), start);
            assert_eq!(inflation.tell(start).above, Some([0, 0]), "{rtt}");
        }
    }
}
