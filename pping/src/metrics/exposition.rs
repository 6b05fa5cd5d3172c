//! The interface that all formats share: families of metrics, whose series have labels and values.
//!
//! Each metric is written once, to an [`Exposition`]. One implementation writes text, the other protobuf.
//! docs/lab/client-library.md says why the client library of the field is not used.

use super::{histogram::RttHistogram, labels::FormattedLabels, metric::Metric, page::Page};

/// The value of a counter or a gauge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Integer(u64),
    /// A time, which is exposed in seconds.
    Nanoseconds(u128),
    Float(f64),
}

/// The bytes before the labels of a series, formatted once for many series of a family.
#[derive(Debug)]
pub(super) struct Prefix(pub(super) Vec<u8>);

/// A page in progress.
pub(super) trait Exposition {
    /// Begins a family, to which the following series belong.
    fn family(&mut self, metric: &Metric);

    /// Returns the beginning of series of this family, with these labels before their own.
    fn prefix(&self, labels: &[(&str, &str)]) -> Prefix;

    /// Writes the value of a series of a counter, gauge or info.
    fn value(&mut self, prefix: &Prefix, labels: &FormattedLabels, value: Value);

    /// Writes a series of a histogram.
    fn histogram(&mut self, labels: &FormattedLabels, histogram: &RttHistogram);

    /// Writes a series of a summary: `count` values, which add up to `sum` ns.
    fn summary(&mut self, labels: &FormattedLabels, count: u64, sum: u64);

    /// Completes the page.
    fn finish(self: Box<Self>) -> Page;
}
