//! A metric whose values are integers.

use prometheus_client::metrics::MetricType;

/// A metric and its series.
pub(super) struct MetricFamily {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: MetricType,
    /// Labels and value of each.
    pub(super) series: Vec<(Vec<(&'static str, String)>, u64)>,
}
