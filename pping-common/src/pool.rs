//! The pool that series take their bins from.
//!
//! In one epoch a series has samples in few of its bins, so it has memory for those only: blocks of [`BINS_PER_BLOCK`]
//! bins. It takes a block with the first sample that falls into its bins. Blocks are handed out in a row and freed
//! together, once the agent has taken their epoch. One buffer takes blocks from the front and the other from the back, so
//! either may take nearly all.
//!
//! A block also has the set of hosts that its samples came from, by [`crate::series::host_bit`], since a group's
//! percentiles need samples of several hosts.
//!
//! The tag of a block names its series and bins. The links by which programs find a block again only save blocks: if two
//! CPUs take a block for the same bins at once, both blocks count.

use crate::{
    hist::BINS,
    layout::layout,
    limits::{BLOCKS_PER_GROUP, BLOCKS_PER_RESERVED_SERIES, RESERVED_SERIES, SERIES_PER_GROUP},
};

/// Bins of a block: one octave.
pub const BINS_PER_BLOCK: usize = 8;

/// Blocks that hold all bins of a series.
pub const BLOCKS: usize = BINS.div_ceil(BINS_PER_BLOCK);

/// Chains of blocks that a series has in an epoch. Neighbouring octaves are in different chains.
pub const CHAINS: usize = 4;

/// Blocks of a chain that are searched: all that a series can have there, and one more that two CPUs took at once.
pub const MAX_CHAIN: usize = BLOCKS.div_ceil(CHAINS) + 1;

/// Returns the number of blocks for this many series, of which `reserved` are [reserved](crate::limits::reserved_series). Those of more
/// interfaces than there are by default have as many blocks as those of groups.
pub const fn block_count(series: u32, reserved: u32) -> u32 {
    let reserved = if reserved < RESERVED_SERIES { reserved } else { RESERVED_SERIES };
    let reserved = if series < reserved { series } else { reserved };
    reserved * BLOCKS_PER_RESERVED_SERIES
        + ((series - reserved) * BLOCKS_PER_GROUP).div_ceil(SERIES_PER_GROUP)
}

/// Neighbouring bins of a series in an epoch. All bytes are zero while the block is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct BinBlock {
    /// A [`BinTag`], plus the number of CPUs that claimed the block.
    pub tag: u32,
    /// The number of the next block of the chain, plus 1; 0 at the end.
    pub next: u32,
    /// The hosts that replied with these samples, by [`crate::series::host_bit`]; 0 if there are no groups.
    pub hosts: u64,
    /// The counts.
    pub bins: [u32; BINS_PER_BLOCK],
}

layout!(BinBlock { tag, next, hosts, bins });

impl BinBlock {
    /// A block that belongs to no series.
    pub const FREE: Self = Self { tag: 0, next: 0, hosts: 0, bins: [0; BINS_PER_BLOCK] };
}

/// How much of the pool is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct BinPool {
    /// Blocks taken in each buffer: buffer 0 takes them from the front, buffer 1 from the back.
    pub taken: [u32; 2],
    /// Blocks in the pool. The agent writes it.
    pub blocks: u32,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
}

layout!(BinPool { taken, blocks, reserved });

/// Returns the position of the `number`th block taken in a buffer, in a pool of `blocks`.
#[inline(always)]
pub fn position(buffer: u32, number: u32, blocks: u32) -> u32 {
    if buffer & 1 == 0 { number } else { blocks.wrapping_sub(number).wrapping_sub(1) }
}

/// The series and the bins of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct BinTag(u32);

/// Bits for the number of CPUs that claimed a block.
const CLAIM_BITS: u32 = 6;
const BUFFER_SHIFT: u32 = CLAIM_BITS;
const NUMBER_BITS: u32 = 5;
const NUMBER_SHIFT: u32 = BUFFER_SHIFT + 1;
const INDEX_SHIFT: u32 = NUMBER_SHIFT + NUMBER_BITS;

impl BinTag {
    /// Bits for the index of a series.
    pub const INDEX_BITS: u32 = u32::BITS - INDEX_SHIFT;

    /// The tag while a CPU has claimed the block but not written its bins yet.
    pub const CLAIMED: u32 = 1;

    /// Returns the tag of the `number`th block of bins of the series at `index`, in a buffer.
    #[inline(always)]
    pub fn new(index: u32, number: u32, buffer: u32) -> Self {
        Self(index << INDEX_SHIFT | (number + 1) << NUMBER_SHIFT | (buffer & 1) << BUFFER_SHIFT)
    }

    /// Reads a block's tag. Returns `None` if the block belongs to no series in this buffer: where the two buffers meet,
    /// blocks of the other buffer come next.
    pub fn read(tag: u32, buffer: u32) -> Option<Self> {
        let tag = tag >> CLAIM_BITS << CLAIM_BITS;
        (tag != 0 && tag >> BUFFER_SHIFT & 1 == buffer & 1).then_some(Self(tag))
    }

    /// Returns the number to add to the tag of a claimed block.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Whether a block with this tag has these bins.
    #[inline(always)]
    pub fn matches(self, tag: u32) -> bool {
        self.0 >> CLAIM_BITS == tag >> CLAIM_BITS
    }

    /// The index of the series.
    pub fn index(self) -> u32 {
        self.0 >> INDEX_SHIFT
    }

    /// The number of the block within its series.
    pub fn number(self) -> usize {
        let number = self.0 >> NUMBER_SHIFT & ((1 << NUMBER_BITS) - 1);
        (number as usize).saturating_sub(1)
    }

    /// The first of the bins.
    pub fn first_bin(self) -> usize {
        self.number() * BINS_PER_BLOCK
    }
}

const _: () = {
    assert!(size_of::<BinBlock>() == 16 + 4 * BINS_PER_BLOCK);
    assert!(core::mem::offset_of!(BinBlock, hosts) == 8);
    assert!(size_of::<BinPool>() == 16);
    assert!(BINS_PER_BLOCK.is_power_of_two() && CHAINS.is_power_of_two());
    assert!(BLOCKS < 1 << NUMBER_BITS);
};

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::method::Method;

    proptest! {
        #[test]
        fn a_tag_says_whose_bins_they_are_whoever_else_wants_the_block(
            index in 0_u32..1 << BinTag::INDEX_BITS,
            number in 0..BLOCKS as u32,
            buffer in 0_u32..2,
            others in 0_u32..60,
        ) {
            let tag = BinTag::new(index, number, buffer);
            let word = tag.bits() + BinTag::CLAIMED + others;
            prop_assert!(tag.matches(word));
            let read = BinTag::read(word, buffer).unwrap();
            prop_assert_eq!((read.index(), read.number() as u32), (index, number));
            prop_assert_eq!(read.first_bin(), number as usize * BINS_PER_BLOCK);
            prop_assert_eq!(BinTag::read(word, buffer + 1), None);
            prop_assert!(!BinTag::new(index ^ 1, number, buffer).matches(word));
            prop_assert!(!BinTag::new(index, (number + 1) % BLOCKS as u32, buffer).matches(word));
            prop_assert!(!BinTag::new(index, number, buffer + 1).matches(word));
        }

        #[test]
        fn the_phases_meet_in_the_middle(blocks in 1_u32..1000, part in 0_u32..1000) {
            let first = part % (blocks + 1);
            let mut positions: Vec<_> = (0..first).map(|number| position(0, number, blocks)).collect();
            positions.extend((0..blocks - first).map(|number| position(1, number, blocks)));
            positions.sort_unstable();
            prop_assert_eq!(positions, (0..blocks).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_free_block_is_nobodys() {
        for buffer in 0..2 {
            assert_eq!(BinTag::read(BinBlock::FREE.tag, buffer), None);
            assert_eq!(BinTag::read(BinTag::CLAIMED, buffer), None);
            assert!(!BinTag::new(0, 0, buffer).matches(0));
        }
    }

    #[test]
    fn groups_may_all_have_ten_octaves() {
        let blocks = |series| block_count(series, RESERVED_SERIES);
        assert_eq!(blocks(RESERVED_SERIES), RESERVED_SERIES * BLOCKS_PER_RESERVED_SERIES);
        assert_eq!(blocks(RESERVED_SERIES + 12) - blocks(RESERVED_SERIES), 30);
        assert_eq!(blocks(RESERVED_SERIES + 1) - blocks(RESERVED_SERIES), 3);
        assert_eq!(block_count(112, 100), 100 * BLOCKS_PER_RESERVED_SERIES + 30);
        assert_eq!(block_count(RESERVED_SERIES + 12, RESERVED_SERIES + 12), blocks(RESERVED_SERIES + 12));
    }

    #[test]
    fn some_interfaces_may_have_all_octaves_of_all_methods() {
        let octaves_of_an_interface = BLOCKS * Method::ALL.len() * 2;
        assert!(block_count(RESERVED_SERIES, RESERVED_SERIES) as usize > 50 * octaves_of_an_interface);
    }
}
