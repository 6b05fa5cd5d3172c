//! The measurements of a series in the last minute.

use std::time::{Duration, Instant};

use pping_common::{
    hist::{self, BINS},
    limits::SECOND,
    method::Method,
    series::{SeriesCounts, Traffic},
};

use crate::{
    aggregate::{Range, add_bins, join, rtt_at},
    quality::{self, ScoreInput},
};

/// The length of a part.
const PART: Duration = Duration::from_secs(10);

/// The number of parts. The oldest one is dropped as a whole, so together they cover 50 to 60 s.
const PARTS: usize = 6;

/// The measurements of a series in the last minute.
#[derive(Debug)]
pub(super) struct Recent {
    began: Instant,
    /// The present part first, the oldest one last.
    parts: [Part; PARTS],
}

/// The measurements of a part.
#[derive(Debug, Default)]
struct Part {
    /// The bins with samples, in order, by [`hist::bin`]. Most series fill few of them in ten seconds.
    bins: Vec<(u8, u32)>,
    range: Range,
    /// The traffic of the hosts whose packets are timed, and of those that reply.
    traffic: [Traffic; 2],
    /// The most bytes that either of the two sent in a second.
    max_bytes_per_second: u64,
}

impl Part {
    /// Adds the measurements of a second.
    fn add(&mut self, counts: &SeriesCounts) {
        self.traffic[0].add(&counts.sent);
        self.traffic[1].add(&counts.received);
        self.max_bytes_per_second =
            self.max_bytes_per_second.max(counts.sent.bytes).max(counts.received.bytes);
        let range = counts.min().zip(counts.max());
        if range.is_none() {
            return;
        }
        self.range = join(self.range, range);
        let filled = counts.bins.iter().enumerate().filter(|&(_, &count)| count > 0);
        add_bins(&mut self.bins, filled.map(|(bin, &count)| (bin as u8, count)));
    }
}

impl Recent {
    /// Creates it without measurements.
    pub(super) fn new(now: Instant) -> Self {
        Self { began: now, parts: <[Part; PARTS]>::default() }
    }

    /// Adds the measurements of a second.
    pub(super) fn add(&mut self, counts: &SeriesCounts, now: Instant) {
        self.roll(now);
        self.parts[0].add(counts);
    }

    /// Drops the parts that are too old at `now`.
    pub(super) fn roll(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.began);
        let passed = (age.as_secs() / PART.as_secs()) as usize;
        if passed >= PARTS {
            *self = Self::new(now);
        } else if passed > 0 {
            self.parts[0].bins.shrink_to_fit();
            self.parts.rotate_right(passed);
            self.parts[..passed].fill_with(Part::default);
            self.began += PART * passed as u32;
        }
    }

    /// Returns the round-trip times at percentiles, ns.
    pub(super) fn percentiles<const N: usize>(&self, percentiles: [u64; N]) -> Option<[u64; N]> {
        let range = self.range()?;
        let bins = self.bins();
        let total: u64 = bins.iter().map(|&(_, count)| count).sum();
        Some(percentiles.map(|percentile| {
            let rank = (total * percentile).div_ceil(100).max(1);
            rtt_at(rank, bins.iter().copied(), range)
        }))
    }

    /// Returns the scores by these profiles, for a series of this method.
    pub(super) fn scores(&self, profiles: &[quality::Profile], method: Method) -> quality::Scores {
        let mut traffic = [Traffic::default(); 2];
        for part in &self.parts {
            traffic.iter_mut().zip(&part.traffic).for_each(|(sum, part)| sum.add(part));
        }
        let busiest = self.parts.iter().map(|part| part.max_bytes_per_second).max().unwrap_or(0);
        let throughput = quality::throughput(busiest, SECOND);
        let bins = self.bins();
        let measured =
            ScoreInput { method, bins: || bins.iter().copied(), range: self.range(), traffic, throughput };
        quality::scores(profiles, &measured)
    }

    fn range(&self) -> Range {
        self.parts.iter().fold(None, |range, part| join(range, part.range))
    }

    /// Returns the bins from the first to the last with samples, with their counts in all parts.
    fn bins(&self) -> Vec<(usize, u64)> {
        let mut sums = [0_u64; BINS];
        for &(bin, count) in self.parts.iter().flat_map(|part| &part.bins) {
            sums[usize::from(bin)] += u64::from(count);
        }
        let (first, end) = self.range().map_or((0, 0), |(min, max)| (hist::bin(min), hist::bin(max) + 1));
        (first..end).map(|bin| (bin, sums[bin])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the same samples in each second of five minutes, and calls `check` after each second.
    fn check_each_second(rtts: &[u64], check: impl Fn(u64, &Recent)) {
        let mut counts = SeriesCounts::EMPTY;
        for &rtt in rtts {
            counts.sample(rtt, 0);
        }
        let start = Instant::now();
        let mut recent = Recent::new(start);
        for second in 0..300 {
            recent.add(&counts, start + Duration::from_secs(second));
            check(second, &recent);
        }
    }

    #[test]
    fn the_last_50_to_60_seconds_count() {
        check_each_second(&[20_000_000], |second, recent| {
            let samples: u64 = recent.bins().iter().map(|&(_, count)| count).sum();
            assert!((second.min(50) + 1..=60).contains(&samples), "{samples} after second {second}");
        });
    }

    #[test]
    fn a_score_of_few_samples_does_not_come_and_go() {
        let profiles = quality::load(None).unwrap();
        // 120 in a minute, where 100 are needed.
        check_each_second(&[20_000_000, 30_000_000], |second, recent| {
            let scores = recent.scores(&profiles, Method::TcpTs);
            assert!(second < 60 || scores.values().all(Option::is_some), "{scores:?} after second {second}");
        });
    }
}
