//! The median, which a busy machine distorts least.

/// Returns the median; of an even number of values, the upper of the two in the middle.
pub(super) fn median(values: impl IntoIterator<Item = u64>) -> u64 {
    let mut values: Vec<_> = values.into_iter().collect();
    assert!(!values.is_empty(), "nothing has no median");
    values.sort_unstable();
    values[values.len() / 2]
}
