//! The measurements of a series over some time, in little memory.

use pping_common::{
    hist,
    series::{SeriesCounts, Traffic},
};

use super::range::{Range, add_bins, join, rtt_at};

/// What was measured of a series over some time. Unlike a [`Distribution`](super::Distribution), it has no bins without
/// samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measurements {
    /// The bins with samples, in order, by [`hist::bin`].
    pub(crate) bins: Vec<(u8, u32)>,
    /// The sum of all RTTs, ns, or the highest number if they are more.
    pub(crate) sum: u64,
    /// The shortest and the longest RTT, ns.
    pub(crate) range: Range,
    /// The traffic of the hosts whose packets are timed, and of those that reply.
    pub(crate) traffic: [Traffic; 2],
    /// The most bytes that either of the two sent in a second.
    pub(crate) max_bytes_per_second: u64,
}

/// Some RTTs in a few numbers, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RttSummary {
    pub(crate) count: u64,
    pub(crate) min: u64,
    pub(crate) mean: u64,
    pub(crate) max: u64,
    /// The 50th, 90th, 95th and 99th percentile.
    pub(crate) percentiles: [u64; 4],
}

impl RttSummary {
    /// What series are ranked by: the 95th percentile; of those with the same, the 99th; then the mean. Percentiles are the
    /// middles of bins, so many series have the same.
    #[cfg(feature = "history")]
    pub(crate) fn rank(&self) -> [u64; 3] {
        let [.., p95, p99] = self.percentiles;
        [p95, p99, self.mean]
    }
}

impl Measurements {
    /// Adds the counts of a second.
    pub(crate) fn add(&mut self, counts: &SeriesCounts) {
        self.traffic[0].add(&counts.sent);
        self.traffic[1].add(&counts.received);
        self.max_bytes_per_second =
            self.max_bytes_per_second.max(counts.sent.bytes).max(counts.received.bytes);
        if !counts.has_samples() {
            return;
        }
        self.sum = self.sum.saturating_add(counts.sum);
        self.range = join(self.range, counts.min().zip(counts.max()));
        let filled = counts.bins.iter().enumerate().filter(|&(_, &count)| count > 0);
        add_bins(&mut self.bins, filled.map(|(bin, &count)| (bin as u8, count)));
    }

    /// Adds those of another time, or of another series.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, traffic) in self.traffic.iter_mut().zip(&other.traffic) {
            sum.add(traffic);
        }
        self.max_bytes_per_second = self.max_bytes_per_second.max(other.max_bytes_per_second);
        self.sum = self.sum.saturating_add(other.sum);
        self.range = join(self.range, other.range);
        add_bins(&mut self.bins, other.bins.iter().copied());
    }

    /// Returns the lowest RTT, ns.
    pub(crate) fn lowest(&self) -> Option<u64> {
        self.range.map(|(min, _)| min)
    }

    /// Returns the number of samples.
    pub(crate) fn count(&self) -> u64 {
        self.bins.iter().map(|&(_, count)| u64::from(count)).sum()
    }

    /// Returns the distribution, if there are samples.
    pub(crate) fn rtts(&self) -> Option<RttSummary> {
        let (min, max) = self.range?;
        let count = self.count();
        let percentiles = [50, 90, 95, 99].map(|percentile| {
            let rank = (count * percentile).div_ceil(100).max(1);
            rtt_at(rank, self.wide_bins(), (min, max))
        });
        let mean = self.sum.checked_div(count)?;
        Some(RttSummary { count, min, mean, max, percentiles })
    }

    /// Returns the highest RTT, ns, and the number of samples of each bin with samples.
    pub(crate) fn histogram(&self) -> impl Iterator<Item = (u64, u32)> {
        self.bins.iter().map(|&(bin, count)| (hist::upper_bound(bin.into()), count))
    }

    /// Returns the memory that they take, bytes.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.bins.capacity() * size_of::<(u8, u32)>()
    }

    /// Returns index and number of samples of each bin with samples, in order.
    pub(crate) fn wide_bins(&self) -> impl Iterator<Item = (usize, u64)> {
        self.bins.iter().map(|&(bin, count)| (usize::from(bin), u64::from(count)))
    }
}
