//! The distribution of round-trip times of a series over some time.

use hdrhistogram::Histogram;
use pping_common::{
    abi::{Tally, Traffic},
    hist::{self, BINS, BINS_PER_OCTAVE, OCTAVES},
};

/// Significant digits of the histogram that percentiles are read from: finer than the bins.
const DIGITS: u8 = 2;

/// What a series got over some time: the sum of its tallies.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Samples by [`hist::bin`].
    pub bins: Box<[u64; BINS]>,
    /// Sum of the RTTs, ns.
    pub sum: u128,
    /// The shortest and the longest RTT, ns, if there is any.
    pub range: Option<(u64, u64)>,
    /// Sent by the hosts whose packets are timed.
    pub sent: Traffic,
    /// Sent to them by the hosts that reply.
    pub received: Traffic,
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            bins: Box::new([0; BINS]),
            sum: 0,
            range: None,
            sent: Traffic::default(),
            received: Traffic::default(),
        }
    }
}

impl Distribution {
    /// Adds what the series got in some more time.
    pub fn add(&mut self, tally: &Tally) {
        self.sent.add(&tally.sent);
        self.received.add(&tally.received);
        let (Some(min), Some(max)) = (tally.min(), tally.max()) else { return };
        self.sum += u128::from(tally.sum);
        let (lowest, highest) = self.range.unwrap_or((min, max));
        self.range = Some((lowest.min(min), highest.max(max)));
        for (sum, &count) in self.bins.iter_mut().zip(&tally.bins) {
            *sum += u64::from(count);
        }
    }

    /// Adds another one.
    pub fn merge(&mut self, other: &Self) {
        self.sent.add(&other.sent);
        self.received.add(&other.received);
        self.sum += other.sum;
        self.range = match (self.range, other.range) {
            (Some((min, max)), Some((lower, higher))) => Some((min.min(lower), max.max(higher))),
            (range, None) | (None, range) => range,
        };
        for (sum, &count) in self.bins.iter_mut().zip(other.bins.iter()) {
            *sum += count;
        }
    }

    /// Samples.
    pub fn count(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// Mean RTT, ns.
    pub fn mean(&self) -> Option<u64> {
        self.sum.checked_div(u128::from(self.count())).map(|mean| mean as u64)
    }

    /// RTTs below which these parts of the samples are (0.5 is the median), ns: the middle of the bin that has it, and
    /// never below the shortest nor above the longest RTT. What [`Distribution::histogram`] would say, without the time
    /// and memory it takes.
    pub fn quantiles<const N: usize>(&self, parts: [f64; N]) -> Option<[u64; N]> {
        let (min, max) = self.range?;
        let count = self.count();
        Some(parts.map(|part| {
            let rank = ((part * count as f64).ceil() as u64).clamp(1, count);
            let mut sum = 0;
            let bin = self.bins.iter().position(|&count| {
                sum += count;
                sum >= rank
            });
            hist::middle(bin.unwrap_or(hist::OVERFLOW)).clamp(min, max)
        }))
    }

    /// The same as a `HdrHistogram`, in which the middle of a bin stands for its samples.
    pub(crate) fn histogram(&self) -> Histogram<u64> {
        #[expect(clippy::expect_used, reason = "both arguments are constants that it documents as valid")]
        let mut histogram = Histogram::new_with_max(hist::upper_bound(BINS - 2) * 2, DIGITS)
            .expect("constant bounds are valid");
        for (bin, &count) in self.bins.iter().enumerate().filter(|&(_, &count)| count > 0) {
            histogram.saturating_record_n(hist::middle(bin), count);
        }
        histogram
    }

    /// Bins that are not empty: the highest RTT of each, ns, and how many samples it has.
    pub fn filled(&self) -> impl Iterator<Item = (u64, u64)> {
        self.bins
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0)
            .map(|(bin, &count)| (hist::upper_bound(bin), count))
    }

    /// How many samples are no longer than 2^0, 2^1, ... 2^26 us.
    pub fn octaves(&self) -> [u64; OCTAVES + 1] {
        let mut sum = self.bins[hist::UNDERFLOW];
        let mut octaves = [sum; OCTAVES + 1];
        for (octave, bins) in octaves[1..].iter_mut().zip(self.bins[1..].chunks_exact(BINS_PER_OCTAVE)) {
            sum += bins.iter().sum::<u64>();
            *octave = sum;
        }
        octaves
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn distribution(rtts: impl IntoIterator<Item = u64>) -> Distribution {
        let mut tally = Tally::EMPTY;
        rtts.into_iter().for_each(|rtt| tally.sample(rtt));
        let mut distribution = Distribution::default();
        distribution.add(&tally);
        distribution
    }

    #[test]
    fn percentiles_are_within_the_error_of_a_bin() {
        let distribution = distribution((1..=1000).map(|ms| ms * 1_000_000));
        assert_eq!((distribution.count(), distribution.mean()), (1000, Some(500_500_000)));
        for (part, exact) in [(0.5, 500), (0.9, 900), (0.99, 990), (1.0, 1000)] {
            let [rtt] = distribution.quantiles([part]).unwrap();
            let error = rtt.abs_diff(exact * 1_000_000) as f64 / (exact * 1_000_000) as f64;
            assert!(error < 0.063, "p{part}: {rtt}");
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
    fn octaves_count_what_is_no_longer() {
        let octaves = distribution([1_000, 1_001, 2_000, 2_001, 90_000_000_000]).octaves();
        assert_eq!(octaves[..3], [1, 3, 4]);
        assert_eq!(octaves[OCTAVES], 4);
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
