//! A metric whose values are integers.

use super::exposition::Kind;

/// A metric and its series.
pub(super) struct IntegerFamily {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    /// Labels and value of each.
    pub(super) series: Vec<(Vec<(&'static str, String)>, u64)>,
}
