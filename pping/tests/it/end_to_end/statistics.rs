//! The one figure that a busy machine spoils least.

/// The upper of the two middle values if their number is even.
pub(super) fn median(values: impl IntoIterator<Item = u64>) -> u64 {
    let mut values: Vec<_> = values.into_iter().collect();
    assert!(!values.is_empty(), "nothing has no median");
    values.sort_unstable();
    values[values.len() / 2]
}
