//! Counts a sample in a histogram.

use std::hint::black_box;

use pping_common::series::SeriesCounts;

use super::Case;

pub(crate) fn cases() -> Vec<Case> {
    // 20 us to 1.3 s, because the time to find the octave varies.
    let rtts: [u64; 64] = std::array::from_fn(|index| 20_000 << (index % 17) | index as u64);
    let (mut counts, mut index) = (Box::new(SeriesCounts::EMPTY), 0);
    vec![Case::new("count a sample", move || {
        counts.sample(black_box(rtts[index % rtts.len()]), 0);
        index += 1;
        black_box(&counts);
    })]
}
