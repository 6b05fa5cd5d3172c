//! What a metric is: the same on pages, in exports, and in docs/metrics.md.

use std::borrow::Cow;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A count, which only grows.
    Counter,
    /// A value that grows and shrinks.
    Gauge,
    /// Times by their length.
    Histogram,
    /// A sum of times and their number, without quantiles.
    Summary,
    /// Labels, with the value 1.
    Info,
}

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name, without its unit if that is one of times or a ratio, and without `_total` or `_info`.
    pub name: &'static str,
    /// The unit in UCUM's notation, in which text in braces is for people; empty if there is none.
    pub unit: &'static str,
    /// The type.
    pub kind: Kind,
    /// A sentence without its full stop.
    pub help: &'static str,
}

/// Labels by name.
pub(super) type Labels = Vec<(&'static str, Cow<'static, str>)>;

/// A metric whose values are integers, and its series: labels and value of each.
pub(super) struct IntegerFamily {
    pub(super) metric: &'static Metric,
    pub(super) series: Vec<(Labels, u64)>,
}

impl Metric {
    pub(super) const fn new(kind: Kind, name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, unit, kind, help }
    }

    pub(super) const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Counter, name, unit, help)
    }

    pub(super) const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Gauge, name, unit, help)
    }

    /// Returns the name on pages, without `_total` or `_info`.
    pub(super) fn name_on_pages(&self) -> String {
        self.unit_on_pages().map_or_else(|| self.name.to_owned(), |unit| format!("{}_{unit}", self.name))
    }

    /// Returns the unit that is part of the name on pages. Counts are in the unit that the name has already.
    pub(super) fn unit_on_pages(&self) -> Option<&'static str> {
        match self.unit {
            "s" => Some("seconds"),
            "1" => Some("ratio"),
            _ => None,
        }
    }
}
