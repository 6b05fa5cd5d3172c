//! A table of flows. One array has buckets: it says in which slots a key can be. The other has the flows themselves. Data
//! that not every packet needs is in further arrays, by the same numbers.
//!
//! A bucket is a cache line with the tags of [`WAYS`] slots. A key can be in either of two buckets. It goes to the first, unless
//! that is fuller than most and than the other. So a packet of most flows looks at one bucket, and buckets are even enough for
//! nearly all `max_flows` flows to find a slot (Azar, Broder, Karlin and Upfal, "Balanced allocations", SIAM Journal on Computing
//! 29(1), 1999). A slot has the number of an entry of the other array. Entry numbers are handed out in a row, and the one freed
//! last is used first. So few flows are in few pages of memory, whose addresses fit into the processor's TLB.

use crate::{flow::FlowKey, hash::TableKeys, layout::layout, parse::Address};

/// Slots in a bucket.
pub const WAYS: usize = 6;

/// Flows per bucket: fewer than a bucket has slots, because some buckets fill before others. With 4, the first flow is
/// refused when 88 to 100 % of `max_flows` are in the table; with 5, at 70 to 84 % (131,072 of them;
/// docs/lab/performance.md).
const FLOWS_PER_BUCKET: u32 = 4;

/// Flows that a bucket gets without a look at the other one. With 4, the first flow would be refused earlier.
const FILLED_FIRST: u32 = 3;

/// Buckets in addition: without them small tables would fill unevenly.
const SPARE_BUCKETS: u32 = 8;

/// Returns the number of buckets for this many flows.
pub const fn bucket_count(flows: u32) -> u32 {
    flows.div_ceil(FLOWS_PER_BUCKET) + SPARE_BUCKETS
}

/// The numbers of an array's elements, which are handed out in a row.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Numbers {
    /// How many numbers were ever handed out.
    pub used: u32,
    /// Not 0 while a CPU hands out a number.
    pub busy: u32,
    /// How many numbers there are.
    pub max: u32,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
}

layout!(Numbers { used, busy, max, reserved });

impl Numbers {
    const fn up_to(max: u32) -> Self {
        Self { used: 0, busy: 0, max, reserved: 0 }
    }
}

/// The head of a table. The agent fills it in before the programs use the table.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Table {
    /// Secrets, so that no sender can fill a bucket on purpose. Both families have the same.
    pub keys: TableKeys,
    /// The number of buckets; 0 before the table is used.
    pub buckets: u32,
    /// The number of flows in the table.
    pub flows: u32,
    /// The numbers of entries.
    pub entries: Numbers,
    /// The numbers of pool entries for pending timestamps.
    pub pending: Numbers,
    /// Fills up the cache lines.
    pub reserved: [u64; 3],
}

layout!(Table { keys, buckets, flows, entries, pending, reserved });

impl Table {
    /// Creates the head of an empty table. `max_pending` is the number of flows that can have pending
    /// timestamps.
    pub fn of(keys: TableKeys, max_flows: u32, max_pending: u32) -> Self {
        Self {
            keys,
            buckets: bucket_count(max_flows),
            flows: 0,
            entries: Numbers::up_to(max_flows),
            pending: Numbers::up_to(max_pending),
            reserved: [0; 3],
        }
    }
}

/// A bucket: its slots, each with a tag that distinguishes it from the others.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Bucket {
    /// The tag of the key in each slot; 0 in a free slot.
    pub tags: [u32; WAYS],
    /// The number of the entry of each slot.
    pub entries: [u32; WAYS],
    /// The number of the sweep that was present when the last packet of each slot arrived, modulo 2^16.
    pub seen: [u16; WAYS],
    /// Not 0 while a CPU inserts or removes a slot.
    pub busy: u32,
}

layout!(Bucket { tags, entries, seen, busy });

impl Bucket {
    /// A bucket whose slots are free.
    pub const EMPTY: Self = Self { tags: [0; WAYS], entries: [0; WAYS], seen: [0; WAYS], busy: 0 };
}

/// Returns the slot of a bucket that has this tag. For tag 0, returns a free slot.
#[inline(always)]
pub fn find_way(mut tags: impl Iterator<Item = u32>, tag: u32) -> Option<usize> {
    tags.position(|other| other == tag)
}

/// Counts the occupied slots of a bucket by their tags. Tags are odd, so no branch is needed, which saves the verifier
/// work.
#[inline(always)]
pub fn occupied(tags: impl Iterator<Item = u32>) -> u32 {
    tags.map(|tag| tag & 1).sum()
}

/// Whether a key goes to the second of its buckets, if so many slots of each are occupied.
#[inline(always)]
pub fn prefers_second(first: u32, second: u32) -> bool {
    first >= FILLED_FIRST && second < first
}

/// Returns the number of sweeps since a flow's last packet, by its [`Bucket::seen`]. If `seen` is ahead of `sweep`,
/// returns 0: the packet saw the next sweep already.
#[inline(always)]
pub fn idle_sweeps(sweep: u32, seen: u16) -> u32 {
    let idle = (sweep as u16).wrapping_sub(seen);
    if idle > u16::MAX / 2 { 0 } else { u32::from(idle) }
}

/// A slot: the number of its bucket, and its number in the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    const WAY_BITS: u32 = WAYS.next_power_of_two().trailing_zeros();

    /// Returns the slot with number `way` in a bucket.
    #[inline(always)]
    pub fn new(bucket: u32, way: usize) -> Self {
        Self(bucket << Self::WAY_BITS | way as u32)
    }

    /// The number of the bucket.
    #[inline(always)]
    pub fn bucket(self) -> u32 {
        self.0 >> Self::WAY_BITS
    }

    /// The number of the slot in its bucket.
    #[inline(always)]
    pub fn way(self) -> usize {
        (self.0 & ((1 << Self::WAY_BITS) - 1)) as usize
    }
}

/// The two buckets in which a key can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// The tag of the key in its bucket; odd.
    pub tag: u32,
    /// The bucket that is searched first.
    pub first: u32,
    /// The other bucket; it may be the same.
    pub second: u32,
}

impl Candidates {
    /// Returns the candidates for a key in a table of `buckets`. `keys` are secret, so that no sender can fill a bucket on
    /// purpose.
    #[inline(always)]
    pub fn of<A: Address>(key: &FlowKey<A>, keys: &TableKeys, buckets: u32) -> Self {
        let [first, second, tag] = keys.spread(key.digest(keys));
        // The high half of the product is an even choice without a division (Lemire, "Fast random integer generation in
        // an interval", ACM Transactions on Modeling and Computer Simulation 29(1), 2019).
        let choose = |number: u32| ((u64::from(number) * u64::from(buckets)) >> 32) as u32;
        Self { tag: tag | 1, first: choose(first), second: choose(second) }
    }
}

const _: () = {
    assert!(size_of::<Bucket>() == 64);
    assert!(size_of::<Table>() == 128);
};

#[cfg(test)]
mod tests;
