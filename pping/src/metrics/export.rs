//! The metrics as values, for an exporter that pushes them.
//!
//! The counts of an exporter do not continue those of earlier runs. So an exporter has its own sums, in bins as fine as
//! the kernel's, beside those of pages, which `--pin` continues from run to run in octaves.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use pping_common::{
    abi::{Part, Residence},
    hist::BINS,
    series::{SeriesCounts, Traffic},
};

use super::{
    metric::{IntegerFamily, Kind, Labels, Metric},
    residence,
};
use crate::{
    aggregate::{Range, join},
    config::Temporality,
    residence::{InterfaceTimes, Times, count},
};

/// How old the first samples of a new series may be.
const EPOCH: Duration = Duration::from_secs(1);

/// All metrics at one time.
#[derive(Debug)]
pub struct Export {
    /// The time.
    pub at: SystemTime,
    /// Whether counts are cumulative or deltas.
    pub temporality: Temporality,
    /// The metrics.
    pub families: Vec<Family>,
}

/// A metric, and its series.
#[derive(Debug)]
pub struct Family {
    /// The metric.
    pub metric: &'static Metric,
    /// The values.
    pub points: Points,
}

/// The values of a metric by its type.
#[derive(Debug)]
pub enum Points {
    /// Counts, which only grow.
    Counts(Vec<Point<u64>>),
    /// Times in seconds, which only grow.
    Times(Vec<Point<f64>>),
    /// Integers that grow and shrink.
    Levels(Vec<Point<u64>>),
    /// Times in seconds or ratios, which grow and shrink.
    Numbers(Vec<Point<f64>>),
    /// Numbers and sums of times, without quantiles: both only grow.
    Summaries(Vec<Point<TimeSum>>),
    /// Round-trip times.
    Distributions(Vec<Point<Box<Distribution>>>),
}

/// A sum of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeSum {
    /// The number of times.
    pub count: u64,
    /// Their sum, s.
    pub sum: f64,
}

/// Labels by name.
pub type Attributes = Vec<(Cow<'static, str>, Arc<str>)>;

/// The value of a series.
#[derive(Debug)]
pub struct Point<T> {
    /// Its labels.
    pub attributes: Attributes,
    /// The time that the value counts from. It means nothing for values that grow and shrink.
    pub since: SystemTime,
    /// The value.
    pub value: T,
}

/// Round-trip times of a series.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// The number of samples by [`pping_common::hist::bin`].
    pub bins: [u64; BINS],
    /// The sum, ns.
    pub sum: u128,
    /// The shortest and the longest, ns.
    pub range: Range,
}

impl Distribution {
    const EMPTY: Self = Self { bins: [0; BINS], sum: 0, range: None };

    /// Adds the samples of counts.
    pub fn add(&mut self, counts: &SeriesCounts) {
        if !counts.has_samples() {
            return;
        }
        for (sum, &count) in self.bins.iter_mut().zip(&counts.bins) {
            *sum += u64::from(count);
        }
        self.sum += u128::from(counts.sum);
        self.range = join(self.range, counts.min().zip(counts.max()));
    }
}

/// The measurements of a series for an exporter.
#[derive(Debug)]
pub(super) struct ExportTotals {
    pub(super) since: SystemTime,
    pub(super) distribution: Box<Distribution>,
    pub(super) traffic: [Traffic; 2],
}

impl ExportTotals {
    pub(super) fn new(since: SystemTime) -> Self {
        Self { since, distribution: Box::new(Distribution::EMPTY), traffic: [Traffic::default(); 2] }
    }

    pub(super) fn add(&mut self, counts: &SeriesCounts) {
        self.traffic[0].add(&counts.sent);
        self.traffic[1].add(&counts.received);
        self.distribution.add(counts);
    }
}

/// The counts of an exporter.
#[derive(Debug)]
pub(super) struct ExportState {
    /// When counting began.
    began: SystemTime,
    /// The time of the last export with [`Temporality::Delta`].
    last: SystemTime,
    /// The values that counters count from, by name and labels; all others count from 0.
    base: HashMap<(&'static str, Vec<String>), u64>,
    /// The residence times that deltas count from, by interface.
    times: HashMap<Arc<str>, Times>,
}

impl ExportState {
    /// Counts since `began`. The counters of `families` count from their values there, all others from 0.
    pub(super) fn new(began: SystemTime, families: &[IntegerFamily]) -> Self {
        let mut exports = Self { began, last: began, base: HashMap::new(), times: HashMap::new() };
        for IntegerFamily { metric, series } in families.iter().filter(|it| it.metric.kind == Kind::Counter) {
            for (labels, value) in series {
                exports.base.insert(key(metric.name, labels), *value);
            }
        }
        exports
    }

    /// Returns the start of a series that has its first samples now.
    pub(super) fn series_began(&self) -> SystemTime {
        let now = SystemTime::now();
        self.began.max(now.checked_sub(EPOCH).unwrap_or(now))
    }

    /// Returns the values of the metrics of interfaces and of the process. Counters of times are in ns.
    pub(super) fn take(
        &mut self,
        families: impl IntoIterator<Item = IntegerFamily>,
        temporality: Temporality,
        at: SystemTime,
    ) -> Vec<Family> {
        let since = if temporality == Temporality::Delta { self.last } else { self.began };
        let mut take = |family: IntegerFamily| {
            let metric = family.metric;
            let points = match metric {
                Metric { kind: Kind::Counter, unit: "s", .. } => {
                    Points::Times(self.counted(family, temporality, since).into_iter().map(seconds).collect())
                }
                Metric { kind: Kind::Counter, .. } => {
                    Points::Counts(self.counted(family, temporality, since))
                }
                _ => Points::Levels(points(family, since)),
            };
            Family { metric, points }
        };
        let taken = families.into_iter().map(&mut take).collect();
        self.last = at;
        taken
    }

    /// Returns a summary from numbers and sums in ns, which have the same series. It comes before [`Self::take`], which
    /// ends a delta.
    pub(super) fn take_summary(
        &mut self,
        metric: &'static Metric,
        [counts, sums]: [IntegerFamily; 2],
        temporality: Temporality,
    ) -> Family {
        let since = if temporality == Temporality::Delta { self.last } else { self.began };
        let counts = self.counted(counts, temporality, since);
        let sums = self.counted(sums, temporality, since);
        let both = |(Point { attributes, since, value: count }, sum): (Point<u64>, Point<u64>)| {
            let value = TimeSum { count, sum: sum.value as f64 / 1e9 };
            Point { attributes, since, value }
        };
        Family { metric, points: Points::Summaries(counts.into_iter().zip(sums).map(both).collect()) }
    }

    /// Returns the residence times, which do not include earlier runs. It comes before [`Self::take`], whose last call
    /// began the delta.
    pub(super) fn distributions(
        &mut self,
        latest: &[InterfaceTimes],
        temporality: Temporality,
    ) -> Vec<Family> {
        let since = if temporality == Temporality::Delta { self.last } else { self.began };
        let now: Vec<_> = latest
            .iter()
            .map(|InterfaceTimes { interface, times, .. }| {
                let base = self.times.get(interface).filter(|_| temporality == Temporality::Delta);
                (interface, base.map_or(**times, |base| times.since(base)))
            })
            .collect();
        let point = |part: Part, interface: &Arc<str>, times: &Times| {
            let &Residence { bins, sum, .. } = times.part(part);
            let value = Box::new(Distribution { bins, sum: u128::from(sum), range: None });
            Point { attributes: vec![("interface".into(), Arc::clone(interface))], since, value }
        };
        let measured =
            Part::ALL.into_iter().filter(|&part| latest.iter().any(|it| it.times.is_measured(part)));
        let families = measured.map(|part| {
            let is_due =
                |times: &Times| temporality == Temporality::Cumulative || count(times.part(part)) > 0;
            let due = now.iter().filter(|(_, times)| is_due(times));
            let points = due.map(|(interface, times)| point(part, interface, times)).collect();
            Family { metric: residence::histogram(part), points: Points::Distributions(points) }
        });
        let families = families.collect();
        self.times = latest.iter().map(|it| (Arc::clone(&it.interface), *it.times)).collect();
        families
    }

    /// Returns the values of a counter.
    fn counted(
        &mut self,
        mut family: IntegerFamily,
        temporality: Temporality,
        since: SystemTime,
    ) -> Vec<Point<u64>> {
        for (labels, value) in &mut family.series {
            let key = key(family.metric.name, labels);
            // A counter that went down has started again.
            let base = self.base.get(&key).copied().filter(|base| *base <= *value).unwrap_or(0);
            if temporality == Temporality::Delta {
                self.base.insert(key, *value);
            }
            *value -= base;
        }
        points(family, since)
    }
}

fn points(family: IntegerFamily, since: SystemTime) -> Vec<Point<u64>> {
    let point = |(labels, value): (Labels, _)| Point {
        attributes: labels.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        since,
        value,
    };
    family.series.into_iter().map(point).collect()
}

fn seconds(Point { attributes, since, value }: Point<u64>) -> Point<f64> {
    Point { attributes, since, value: value as f64 / 1e9 }
}

fn key(name: &'static str, labels: &Labels) -> (&'static str, Vec<String>) {
    (name, labels.iter().map(|(_, value)| value.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    static PACKETS: Metric = Metric::counter("pping_packets", "{packet}", "");

    fn family(values: &[(&'static str, u64)]) -> IntegerFamily {
        let series = values.iter().map(|&(label, value)| (vec![("interface", label.into())], value));
        IntegerFamily { metric: &PACKETS, series: series.collect() }
    }

    fn taken(
        exports: &mut ExportState,
        values: &[(&'static str, u64)],
        temporality: Temporality,
    ) -> Vec<u64> {
        let families = exports.take([family(values)], temporality, SystemTime::now());
        let Points::Counts(points) = &families[0].points else { panic!("no counter") };
        points.iter().map(|point| point.value).collect()
    }

    #[test]
    fn counters_count_from_where_the_exporter_began() {
        let mut exports = ExportState::new(SystemTime::now(), &[family(&[("eth0", 100)])]);
        let cumulative = Temporality::Cumulative;
        assert_eq!(taken(&mut exports, &[("eth0", 107), ("eth1", 5)], cumulative), [7, 5]);
        assert_eq!(taken(&mut exports, &[("eth0", 109), ("eth1", 5)], cumulative), [9, 5]);
        // As after all pins were removed.
        assert_eq!(taken(&mut exports, &[("eth0", 3)], cumulative), [3]);
    }

    #[test]
    fn deltas_count_from_the_export_before_and_add_up() {
        let mut exports = ExportState::new(SystemTime::now(), &[]);
        let delta = Temporality::Delta;
        assert_eq!(taken(&mut exports, &[("eth0", 7)], delta), [7]);
        assert_eq!(taken(&mut exports, &[("eth0", 7), ("eth1", 2)], delta), [0, 2]);
        assert_eq!(taken(&mut exports, &[("eth0", 12), ("eth1", 2)], delta), [5, 0]);
    }
}
