//! What all formats have in common: families of metrics, in which series with labels have values.
//!
//! Each metric is written once, to an [`Exposition`], of which there is one for text and one for protobuf. The client library is not used
//! for it, since a page of many groups takes it several times as long, and its protobuf a dozen times the memory of the page (see
//! docs/scale.md).

use super::{histogram::RttHistogram, labels::Labels, page::Page};

/// The type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    /// A sum and a count, without quantiles.
    Summary,
    Info,
}

/// A metric family.
#[derive(Clone, Copy, Debug)]
pub(super) struct MetricFamily<'a> {
    /// Its name, without `_total` or `_info`, but with its unit if it has one.
    pub(super) name: &'a str,
    pub(super) unit: Option<&'a str>,
    pub(super) kind: Kind,
    /// A sentence without its full stop.
    pub(super) help: &'a str,
}

/// The value of a counter or a gauge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Integer(u64),
    /// A time, which is exposed in seconds.
    Nanoseconds(u128),
    Float(f64),
}

/// What precedes the labels of a series: the same in each series of a family.
#[derive(Debug)]
pub(super) struct Prefix(pub(super) Vec<u8>);

/// A page in progress.
pub(super) trait Exposition {
    /// Begins a family. What follows belongs to it.
    fn family(&mut self, family: &MetricFamily<'_>);

    /// The beginning of series of this family, with labels besides their own.
    fn prefix(&self, labels: &[(&str, &str)]) -> Prefix;

    /// Writes the value of a series of a counter, gauge or info.
    fn value(&mut self, prefix: &Prefix, labels: &Labels, value: Value);

    /// Writes a series of a histogram.
    fn histogram(&mut self, labels: &Labels, histogram: &RttHistogram);

    /// Writes a series of a summary: of so many values, which add up to `sum` ns.
    fn summary(&mut self, labels: &Labels, count: u64, sum: u64);

    /// Completes the page.
    fn finish(self: Box<Self>) -> Page;
}
