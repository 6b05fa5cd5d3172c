//! A row: what was measured of a series in an interval.

use std::cmp::Ordering;

use crate::{aggregate::Measurements, groups::SeriesName};

/// The measurements of a series in an interval.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The series. Its group has no key if the row comes from a file.
    pub(super) series: SeriesName,
    /// The start of the interval, seconds since the Unix epoch.
    pub(super) time: u64,
    pub(super) measured: Measurements,
}

/// The order of series in files: by group first, so that all rows of one are together.
pub(super) fn compare(one: &SeriesName, other: &SeriesName) -> Ordering {
    let key = |name: &SeriesName| (name.method, name.matched, name.side);
    let (group, other_group) = (&one.group, &other.group);
    group
        .label
        .cmp(&other_group.label)
        .then_with(|| group.prefix.cmp(&other_group.prefix))
        .then_with(|| group.dscp.cmp(&other_group.dscp))
        .then_with(|| one.interface.cmp(&other.interface))
        .then_with(|| key(one).cmp(&key(other)))
}
