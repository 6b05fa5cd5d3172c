//! Ranges of RTTs, sums of bins, and ranks within bins.

use pping_common::hist;

/// The shortest and the longest RTT, ns; `None` without samples.
pub(crate) type Range = Option<(u64, u64)>;

/// Returns the smallest range that contains both.
pub(crate) fn join(one: Range, other: Range) -> Range {
    match (one, other) {
        (Some((min, max)), Some((lower, higher))) => Some((min.min(lower), max.max(higher))),
        (range, None) | (None, range) => range,
    }
}

/// Adds bins to others. Both are pairs of index and count, in order, without bins that are empty.
#[cfg(feature = "live")]
pub(crate) fn add_bins(sums: &mut Vec<(u8, u32)>, bins: impl IntoIterator<Item = (u8, u32)>) {
    let mut at = 0;
    for (bin, count) in bins {
        // Both are in order, so each search begins where the last one ended.
        at += sums[at..].partition_point(|&(known, _)| known < bin);
        match sums.get_mut(at) {
            Some((known, sum)) if *known == bin => *sum = sum.saturating_add(count),
            _ => sums.insert(at, (bin, count)),
        }
    }
}

/// Returns the RTT of this rank, ns; ranks begin at 1. The RTT is the middle of its bin, clamped to `min` and `max`. `bins`
/// are pairs of index and count, in order.
pub(crate) fn rtt_at(rank: u64, bins: impl IntoIterator<Item = (usize, u64)>, (min, max): (u64, u64)) -> u64 {
    let mut seen = 0;
    let bin = bins.into_iter().find(|&(_, count)| {
        seen += count;
        seen >= rank
    });
    bin.map_or(max, |(bin, _)| hist::middle(bin).clamp(min, max))
}
