//! The measurements of a series in the last minute.

use std::time::{Duration, Instant};

use pping_common::{
    abi::{Tally, Traffic},
    hist::{self, BINS},
    limits::SECOND,
    rtt::Method,
};

use crate::{
    aggregate::{Range, join, rtt_at},
    quality::{self, Measured},
};

/// The length of a half. Two halves are kept, and the older one is dropped as a whole: together they cover half a
/// minute to a minute.
const HALF: Duration = Duration::from_secs(30);

/// The measurements of a series in the last minute.
#[derive(Debug)]
pub(super) struct Recent {
    began: Instant,
    /// The present half, and the one before it.
    halves: [Half; 2],
}

/// The measurements of a half.
#[derive(Clone, Debug)]
struct Half {
    bins: Box<[u32; BINS]>,
    range: Range,
    /// The traffic of the hosts whose packets are timed, and of those that reply.
    traffic: [Traffic; 2],
    /// The most bytes that either of the two sent in a second.
    busiest: u64,
}

impl Half {
    fn empty() -> Self {
        Self { bins: Box::new([0; BINS]), range: None, traffic: [Traffic::default(); 2], busiest: 0 }
    }
}

impl Recent {
    /// Creates it without measurements.
    pub(super) fn new(now: Instant) -> Self {
        Self { began: now, halves: [Half::empty(), Half::empty()] }
    }

    /// Adds the measurements of a second.
    pub(super) fn add(&mut self, tally: &Tally, now: Instant) {
        self.roll(now);
        let half = &mut self.halves[0];
        half.traffic[0].add(&tally.sent);
        half.traffic[1].add(&tally.received);
        half.busiest = half.busiest.max(tally.sent.bytes).max(tally.received.bytes);
        let range = tally.min().zip(tally.max());
        if range.is_none() {
            return;
        }
        half.range = join(half.range, range);
        for (sum, &count) in half.bins.iter_mut().zip(&tally.bins) {
            *sum = sum.saturating_add(count);
        }
    }

    /// Drops the halves that are too old at `now`.
    pub(super) fn roll(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.began);
        if age < HALF {
            return;
        }
        self.halves.swap(0, 1);
        self.halves[0] = Half::empty();
        if age >= 2 * HALF {
            self.halves[1] = Half::empty();
            self.began = now;
        } else {
            self.began += HALF;
        }
    }

    /// Returns the round-trip times at percentiles, ns.
    pub(super) fn percentiles<const N: usize>(&self, percentiles: [u64; N]) -> Option<[u64; N]> {
        let range = self.range()?;
        let total: u64 = self.bins().map(|(_, count)| count).sum();
        Some(percentiles.map(|percentile| {
            let rank = (total * percentile).div_ceil(100).max(1);
            rtt_at(rank, self.bins(), range)
        }))
    }

    /// Returns the scores by these profiles, for a series of this method.
    pub(super) fn scores(&self, profiles: &[quality::Profile], method: Method) -> quality::Scores {
        let [one, other] = &self.halves;
        let mut traffic = one.traffic;
        traffic.iter_mut().zip(&other.traffic).for_each(|(sum, other)| sum.add(other));
        let throughput = quality::throughput(one.busiest.max(other.busiest), SECOND);
        let measured = Measured { method, bins: || self.bins(), range: self.range(), traffic, throughput };
        quality::scores(profiles, &measured)
    }

    fn range(&self) -> Range {
        join(self.halves[0].range, self.halves[1].range)
    }

    /// Returns the bins from the first to the last with samples, with their counts.
    fn bins(&self) -> impl Iterator<Item = (usize, u64)> {
        let [one, other] = &self.halves;
        let (first, end) = self.range().map_or((0, 0), |(min, max)| (hist::bin(min), hist::bin(max) + 1));
        (first..end).map(|bin| (bin, u64::from(one.bins[bin]) + u64::from(other.bins[bin])))
    }
}
