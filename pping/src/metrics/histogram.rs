//! The round-trip times of a series, as a histogram of Prometheus.

use std::time::SystemTime;

use pping_common::{
    abi::{BUCKETS, PersistentTotals},
    hist::{self, BINS, BINS_PER_OCTAVE, OCTAVES, OVERFLOW, UNDERFLOW},
    series::SeriesCounts,
};

/// Counts by bin since this process created the series, and the counts by octave that earlier processes kept in the persistent counts.
///
/// The text formats show both, as buckets of octaves. Protobuf shows the counts of this process only, because only
/// their bins are known.
#[derive(Clone, Debug)]
pub(super) struct RttHistogram {
    since: SystemTime,
    /// Kept by earlier processes: samples by bucket, not cumulative, and the sum of their RTTs, ns.
    restored: Option<Box<([u64; BUCKETS], u128)>>,
    /// Samples below all octaves.
    underflow: u64,
    /// The octaves that have samples, ascending. A series has few.
    octaves: Vec<Octave>,
    /// Samples above all octaves.
    overflow: u64,
    /// Sum of the RTTs, ns.
    sum: u128,
}

/// The samples of an octave.
#[derive(Clone, Copy, Debug)]
struct Octave {
    number: usize,
    bins: [u64; BINS_PER_OCTAVE],
}

impl RttHistogram {
    /// Creates a histogram without samples; counting began at `since`.
    pub(super) const fn new(since: SystemTime) -> Self {
        Self { since, restored: None, underflow: 0, octaves: Vec::new(), overflow: 0, sum: 0 }
    }

    /// Creates a histogram from the number of times by bin, and their sum, ns; counting began at `since`.
    pub(super) fn of(since: SystemTime, bins: &[u64; BINS], sum: u128) -> Self {
        let mut histogram = Self::new(since);
        histogram.add_bins(bins, sum);
        histogram
    }

    /// Adds samples.
    pub(super) fn add(&mut self, counts: &SeriesCounts) {
        self.add_bins(&counts.bins, u128::from(counts.sum));
    }

    fn add_bins<T: Copy + Into<u64>>(&mut self, bins: &[T; BINS], sum: u128) {
        self.sum += sum;
        self.underflow += bins[UNDERFLOW].into();
        self.overflow += bins[OVERFLOW].into();
        let mut position = 0;
        for (number, bins) in bins[UNDERFLOW + 1..OVERFLOW].chunks_exact(BINS_PER_OCTAVE).enumerate() {
            if bins.iter().all(|&count| count.into() == 0) {
                continue;
            }
            while self.octaves.get(position).is_some_and(|octave| octave.number < number) {
                position += 1;
            }
            if self.octaves.get(position).is_none_or(|octave| octave.number > number) {
                self.octaves.insert(position, Octave { number, bins: [0; BINS_PER_OCTAVE] });
            }
            for (sum, &count) in self.octaves[position].bins.iter_mut().zip(bins) {
                *sum += count.into();
            }
        }
    }

    /// Whether there are samples, of this process or an earlier one.
    pub(super) fn has_samples(&self) -> bool {
        let has_restored = || self.restored.as_ref().is_some_and(|it| it.0.iter().any(|&count| count > 0));
        self.underflow > 0 || self.overflow > 0 || !self.octaves.is_empty() || has_restored()
    }

    /// Continues from the totals of an earlier process.
    pub(super) fn restore(&mut self, totals: &PersistentTotals) {
        let [low, high] = totals.sum;
        self.restored = Some(Box::new((totals.buckets, u128::from(high) << 64 | u128::from(low))));
    }

    /// Returns all samples by bucket, not cumulative, and the sum of their RTTs, ns.
    pub(super) fn totals(&self) -> ([u64; BUCKETS], u128) {
        let (mut buckets, mut sum) = self.restored.as_deref().copied().unwrap_or(([0; BUCKETS], 0));
        for (bucket, count) in buckets.iter_mut().zip(self.buckets()) {
            *bucket += count;
        }
        sum += self.sum;
        (buckets, sum)
    }

    /// Returns the number of samples up to the bound of each bucket; the last is the number of all samples.
    pub(super) fn cumulative(&self) -> [u64; BUCKETS] {
        cumulative(self.totals().0)
    }

    /// Returns the sum of all RTTs, ns.
    pub(super) fn sum(&self) -> u128 {
        self.restored.as_ref().map_or(0, |restored| restored.1) + self.sum
    }

    /// Returns the part of the histogram that this process counted.
    pub(super) fn counted(&self) -> Counted<'_> {
        Counted(self)
    }

    /// Returns the samples of this process by bucket, not cumulative.
    fn buckets(&self) -> [u64; BUCKETS] {
        let mut buckets = [0; BUCKETS];
        buckets[0] = self.underflow;
        buckets[BUCKETS - 1] = self.overflow;
        for octave in &self.octaves {
            buckets[1 + octave.number] = octave.bins.iter().sum();
        }
        buckets
    }
}

/// The part of a histogram that this process counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted<'a>(&'a RttHistogram);

impl Counted<'_> {
    /// Returns when counting began.
    pub(super) fn since(self) -> SystemTime {
        self.0.since
    }

    /// Returns the number of samples up to the bound of each bucket; the last is the number of all samples.
    pub(super) fn cumulative(self) -> [u64; BUCKETS] {
        cumulative(self.0.buckets())
    }

    /// Returns the sum of the RTTs, ns.
    pub(super) fn sum(self) -> u128 {
        self.0.sum
    }

    /// Returns the number of samples below all octaves.
    pub(super) fn underflow(self) -> u64 {
        self.0.underflow
    }

    /// Returns the bins with samples, ascending: their index in native histograms of [`hist::SCHEMA`], and their number
    /// of samples. Samples above all octaves count for the first bin beyond the octaves.
    pub(super) fn bins(self) -> impl Iterator<Item = (i32, u64)> {
        const FIRST: i32 = hist::FIRST_OCTAVE * BINS_PER_OCTAVE as i32 + 1;
        let bins = self.0.octaves.iter().flat_map(|octave| {
            let first = FIRST + (octave.number * BINS_PER_OCTAVE) as i32;
            (first..).zip(octave.bins)
        });
        let beyond = (FIRST + (OCTAVES * BINS_PER_OCTAVE) as i32, self.0.overflow);
        bins.chain([beyond]).filter(|&(_, count)| count > 0)
    }
}

fn cumulative(buckets: [u64; BUCKETS]) -> [u64; BUCKETS] {
    let mut sum = 0;
    buckets.map(|count| {
        sum += count;
        sum
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn histogram(rtts: &[u64]) -> RttHistogram {
        let mut histogram = RttHistogram::new(SystemTime::UNIX_EPOCH);
        // In two parts, like two seconds.
        for part in rtts.chunks(rtts.len().div_ceil(2)) {
            let mut counts = SeriesCounts::EMPTY;
            for &rtt in part {
                counts.sample(rtt, 0);
            }
            histogram.add(&counts);
        }
        histogram
    }

    /// Generates RTTs around powers of two of a second, some of them below and above all octaves.
    fn rtts() -> impl Strategy<Value = Vec<u64>> {
        let rtt = |(octave, offset)| (hist::upper_bound(UNDERFLOW) << octave) + offset - 4;
        prop::collection::vec((0_u32..40, 0_u64..9).prop_map(rtt), 1..200)
    }

    proptest! {
        #[test]
        fn buckets_count_samples_up_to_their_bound(rtts in rtts()) {
            let up_to = |bound: u64| rtts.iter().filter(|&&rtt| rtt <= bound).count() as u64;
            let expected: [u64; BUCKETS] = std::array::from_fn(|octave| match octave {
                octave if octave == BUCKETS - 1 => up_to(u64::MAX),
                octave => up_to((1_000_000_000 << octave) >> hist::FIRST_OCTAVE.unsigned_abs()),
            });
            let histogram = histogram(&rtts);
            prop_assert_eq!(histogram.cumulative(), expected);
            prop_assert_eq!(histogram.counted().cumulative(), expected);
            prop_assert_eq!(histogram.sum(), rtts.iter().map(|&rtt| u128::from(rtt)).sum::<u128>());
        }

        #[test]
        fn bins_are_those_of_the_schema(rtts in rtts()) {
            let mut expected = BTreeMap::new();
            for rtt in rtts.iter().map(|&rtt| rtt as f64 / 1e9).filter(|&rtt| rtt > 2_f64.powi(-20)) {
                let index = if rtt > 64.0 { 49 } else { (rtt.log2() * 8.0).ceil() as i32 };
                *expected.entry(index).or_insert(0) += 1;
            }
            let histogram = histogram(&rtts);
            let counted = histogram.counted();
            prop_assert_eq!(counted.bins().collect::<BTreeMap<_, _>>(), expected);
            let all = counted.underflow() + counted.bins().map(|(_, count)| count).sum::<u64>();
            prop_assert_eq!(all, rtts.len() as u64);
        }

        #[test]
        fn what_was_kept_is_in_the_totals_only(before in rtts(), after in rtts()) {
            let (buckets, sum) = histogram(&before).totals();
            let totals = PersistentTotals { buckets, sum: [sum as u64, (sum >> 64) as u64], ..PersistentTotals::ZERO };
            let mut restored = histogram(&after);
            restored.restore(&totals);
            prop_assert_eq!(restored.totals(), histogram(&[before, after.clone()].concat()).totals());
            prop_assert_eq!(restored.counted().cumulative(), histogram(&after).cumulative());
            prop_assert_eq!(restored.counted().sum(), histogram(&after).sum());
        }
    }
}
