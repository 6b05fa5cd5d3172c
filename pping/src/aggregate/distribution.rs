//! The distribution of the RTTs of a series.

use hdrhistogram::Histogram;
use pping_common::{
    hist::{self, BINS},
    series::{SeriesCounts, Traffic},
};

use super::range::{join, rtt_at};

/// Significant digits of the `HdrHistogram`: finer than the bins.
const DIGITS: u8 = 2;

/// The RTTs of a series over some time: the sum of its counts.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Samples by [`hist::bin`].
    pub bins: Box<[u64; BINS]>,
    /// Sum of the RTTs, ns.
    pub sum: u128,
    /// The shortest and the longest RTT, ns; `None` without samples.
    pub range: Option<(u64, u64)>,
    /// Sent by the hosts whose packets are timed.
    pub sent: Traffic,
    /// Sent to them by the hosts that reply.
    pub received: Traffic,
    /// The largest byte count of one epoch, of bytes sent or received.
    pub busiest: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            bins: Box::new([0; BINS]),
            sum: 0,
            range: None,
            sent: Traffic::default(),
            received: Traffic::default(),
            busiest: 0,
        }
    }
}

impl Distribution {
    /// Adds counts.
    pub fn add(&mut self, counts: &SeriesCounts) {
        self.sent.add(&counts.sent);
        self.received.add(&counts.received);
        self.busiest = self.busiest.max(counts.sent.bytes).max(counts.received.bytes);
        if !counts.has_samples() {
            return;
        }
        self.sum += u128::from(counts.sum);
        self.range = join(self.range, counts.min().zip(counts.max()));
        for (sum, &count) in self.bins.iter_mut().zip(&counts.bins) {
            *sum += u64::from(count);
        }
    }

    /// Adds another distribution.
    pub fn merge(&mut self, other: &Self) {
        self.sent.add(&other.sent);
        self.received.add(&other.received);
        self.busiest = self.busiest.max(other.busiest);
        self.sum += other.sum;
        self.range = join(self.range, other.range);
        for (sum, &count) in self.bins.iter_mut().zip(other.bins.iter()) {
            *sum += count;
        }
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// The mean RTT, ns.
    pub fn mean(&self) -> Option<u64> {
        self.sum.checked_div(u128::from(self.count())).map(|mean| mean as u64)
    }

    /// The quantiles of the RTTs, ns; 0.5 is the median. [`Distribution::histogram`] gives the same, but takes more time and memory.
    pub fn quantiles<const N: usize>(&self, parts: [f64; N]) -> Option<[u64; N]> {
        let (min, max) = self.range?;
        let count = self.count();
        Some(parts.map(|part| {
            let rank = ((part * count as f64).ceil() as u64).clamp(1, count);
            rtt_at(rank, self.bins.iter().copied().enumerate(), (min, max))
        }))
    }

    /// The distribution as a `HdrHistogram`, with each sample at the middle of its bin.
    pub(crate) fn histogram(&self) -> Histogram<u64> {
        #[expect(clippy::expect_used, reason = "both arguments are constants that it documents as valid")]
        let mut histogram = Histogram::new_with_max(hist::upper_bound(BINS - 2) * 2, DIGITS)
            .expect("constant bounds are valid");
        for (bin, &count) in self.bins.iter().enumerate().filter(|&(_, &count)| count > 0) {
            histogram.saturating_record_n(hist::middle(bin), count);
        }
        histogram
    }

    /// For each bin that has samples: its upper bound, ns, and the number of its samples.
    pub fn filled(&self) -> impl Iterator<Item = (u64, u64)> {
        self.bins
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0)
            .map(|(bin, &count)| (hist::upper_bound(bin), count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn distribution(rtts: impl IntoIterator<Item = u64>) -> Distribution {
        let mut counts = SeriesCounts::EMPTY;
        rtts.into_iter().for_each(|rtt| counts.sample(rtt, 0));
        let mut distribution = Distribution::default();
        distribution.add(&counts);
        distribution
    }

    #[test]
    fn percentiles_are_within_the_error_of_a_bin() {
        let distribution = distribution((1..=1000).map(|ms| ms * 1_000_000));
        assert_eq!((distribution.count(), distribution.mean()), (1000, Some(500_500_000)));
        for (part, exact) in [(0.5, 500), (0.9, 900), (0.99, 990), (1.0, 1000)] {
            let [rtt] = distribution.quantiles([part]).unwrap();
            let error = rtt.abs_diff(exact * 1_000_000) as f64 / (exact * 1_000_000) as f64;
            assert!(error < 0.0445, "p{part}: {rtt}");
        }
    }

    #[test]
    fn percentiles_stay_within_what_was_measured() {
        for rtt in [0, 1, 999, 1_000_000, 90_000_000_000] {
            assert_eq!(distribution([rtt]).quantiles([0.0, 0.5, 1.0]), Some([rtt; 3]));
        }
        assert_eq!(distribution([]).quantiles([0.5]), None);
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_a_hdr_histogram(
            rtts in prop::collection::vec((0_u32..37, 0_u64..1 << 37), 1..200),
        ) {
            let distribution = distribution(rtts.into_iter().map(|(bits, rtt)| rtt >> bits));
            let (min, max) = distribution.range.unwrap();
            let histogram = distribution.histogram();
            for part in [0.0, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
                let bin = hist::bin(histogram.value_at_quantile(part));
                prop_assert_eq!(distribution.quantiles([part]), Some([hist::middle(bin).clamp(min, max)]), "{}", part);
            }
        }
    }

    #[test]
    fn merging_is_as_if_all_had_been_one() {
        let mut one = distribution([5_000, 70_000]);
        one.merge(&distribution([90_000]));
        one.merge(&distribution([]));
        let all = distribution([5_000, 70_000, 90_000]);
        assert_eq!((one.bins, one.sum, one.range), (all.bins, all.sum, all.range));
    }
}
