//! Profiles: the needs of applications.

use std::sync::Arc;

/// Some profiles, in the order of their file.
pub type Profiles = Arc<[Profile]>;

/// The needs of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: Arc<str>,
    /// The latencies by percentile, at least one.
    pub latency: Vec<Latency>,
    /// The share of packets that are lost, from 0 to 1, if loss matters.
    pub loss: Option<Threshold>,
    /// The throughput that has to be reached, bits per second, if it matters.
    pub throughput: Option<f64>,
    /// The fewest samples for a score; with fewer it is unknown.
    pub samples: u64,
}

/// A latency at a percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// The percentile, from 0 to 100.
    pub percentile: f64,
    /// The round-trip time, ns.
    pub threshold: Threshold,
}

/// The two ends of a scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Up to here performance is optimal.
    pub optimal: f64,
    /// From here on it is unacceptable.
    pub unacceptable: f64,
}

/// The fewest samples for any percentile.
const MIN_SAMPLES: u64 = 30;

impl Latency {
    /// The number of samples of which one lies above the percentile, on average; at least [`MIN_SAMPLES`].
    pub(super) fn samples(&self) -> u64 {
        let above = 100.0 - self.percentile;
        // 100 / (100 - 99.9) is a little more than 1000.
        if above > 0.0 { ((100.0 / above - 1e-6).ceil() as u64).max(MIN_SAMPLES) } else { MIN_SAMPLES }
    }

    /// The rank of the percentile among this many samples, from 1.
    pub(super) fn rank(&self, count: u64) -> u64 {
        ((self.percentile * count as f64 / 100.0 - 1e-6).ceil() as u64).clamp(1, count.max(1))
    }
}

impl Threshold {
    /// How good a value is, from 0 to 1.
    pub(super) fn score(&self, value: f64) -> f64 {
        (1.0 - (value - self.optimal) / (self.unacceptable - self.optimal)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(percentile: f64) -> Latency {
        Latency { percentile, threshold: Threshold { optimal: 0.0, unacceptable: 1.0 } }
    }

    #[test]
    fn the_higher_the_percentile_the_more_samples_it_takes() {
        let samples = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0].map(|it| at(it).samples());
        assert_eq!(samples, [30, 30, 30, 100, 1000, 10_000, 30]);
    }

    #[test]
    fn a_rank_is_that_of_the_sample_with_so_many_percent_below() {
        assert_eq!((at(99.9).rank(1000), at(99.9).rank(1001), at(100.0).rank(7)), (999, 1000, 7));
        assert_eq!((at(0.0).rank(7), at(50.0).rank(7), at(50.0).rank(0)), (1, 4, 1));
    }
}
