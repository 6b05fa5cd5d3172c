//! A table of flows that is two arrays: in which of its slots a key can be, and what is in them. What is not looked at for every
//! packet is in more arrays, by the same numbers.
//!
//! A bucket is a cache line with the tags of [`WAYS`] slots. A key can be in either of two buckets and goes to the emptier
//! one, which keeps them even enough for all flows that a table is for to find a slot (Azar, Broder, Karlin and Upfal,
//! "Balanced allocations", SIAM Journal on Computing 29(1), 1999). A slot has the number of an entry of the other array.
//! Those are handed out in a row, and what was given back last is handed out first: few flows are in few pages of memory,
//! whose addresses a processor can keep.

use crate::{bytes::mix, flow::FlowKey, layout::layout, parse::Address};

/// Candidates in a bucket.
pub const WAYS: usize = 6;

/// Flows for which a bucket is set aside: fewer than it has slots, as some buckets fill before others. With 4 the first flow is
/// refused when 88 to 100 % of `max_flows` are there; with 5 at 70 to 84 % (131,072 of them; docs/performance.md).
const FLOWS_PER_BUCKET: u32 = 4;

/// Buckets beside those, without which small tables would fill unevenly.
const SPARE_BUCKETS: u32 = 8;

/// The number of buckets for so many flows.
pub const fn buckets(flows: u32) -> u32 {
    flows.div_ceil(FLOWS_PER_BUCKET) + SPARE_BUCKETS
}

/// Numbers of elements of an array, which are handed out in a row.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Numbers {
    /// The number of those that were ever handed out.
    pub used: u32,
    /// Whether a CPU hands out another.
    pub busy: u32,
    /// The number of all.
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

/// The head of a table. The agent fills it in before the table is used.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Table {
    /// A secret, so that no sender can fill a bucket on purpose.
    pub seed: u64,
    /// The number of buckets; 0 before the table is used.
    pub buckets: u32,
    /// The number of flows.
    pub flows: u32,
    /// The numbers of flows.
    pub entries: Numbers,
    /// The numbers of entries of the pool of what is pending.
    pub pending: Numbers,
}

layout!(Table { seed, buckets, flows, entries, pending });

impl Table {
    /// An empty one for so many flows, of which so many can have something pending, without a seed yet.
    pub fn of(max_flows: u32, max_pending: u32) -> Self {
        Self {
            seed: 0,
            buckets: buckets(max_flows),
            flows: 0,
            entries: Numbers::up_to(max_flows),
            pending: Numbers::up_to(max_pending),
        }
    }
}

/// The tag of a key, which distinguishes the slots of a bucket.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Bucket {
    /// Of each slot the tag of the key in it, or 0.
    pub tags: [u32; WAYS],
    /// Of each slot the number of its entry.
    pub entries: [u32; WAYS],
    /// Of each slot the sweep before which the last packet came, modulo 2^16.
    pub seen: [u16; WAYS],
    /// Whether a CPU changes which are taken.
    pub busy: u32,
}

layout!(Bucket { tags, entries, seen, busy });

impl Bucket {
    /// A bucket with nothing in it.
    pub const EMPTY: Self = Self { tags: [0; WAYS], entries: [0; WAYS], seen: [0; WAYS], busy: 0 };
}

/// The slot that has this tag among those of a bucket, or, of 0, one that is free.
#[inline(always)]
pub fn way(mut tags: impl Iterator<Item = u32>, tag: u32) -> Option<usize> {
    tags.position(|other| other == tag)
}

/// The number of occupied slots by the tags of a bucket. Without a branch, for the verifier's sake: tags are odd.
#[inline(always)]
pub fn taken(tags: impl Iterator<Item = u32>) -> u32 {
    tags.map(|tag| tag & 1).sum()
}

/// How many sweeps ago a packet came before which [`Bucket::seen`] says. One that a sweep has not come to yet counts as of this.
#[inline(always)]
pub fn idle(sweep: u32, seen: u16) -> u32 {
    let idle = (sweep as u16).wrapping_sub(seen);
    if idle > u16::MAX / 2 { 0 } else { u32::from(idle) }
}

/// A slot: its bucket, and which of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    const WAY_BITS: u32 = WAYS.next_power_of_two().trailing_zeros();

    /// A slot of a bucket.
    #[inline(always)]
    pub fn new(bucket: u32, way: usize) -> Self {
        Self(bucket << Self::WAY_BITS | way as u32)
    }

    /// The bucket.
    #[inline(always)]
    pub fn bucket(self) -> u32 {
        self.0 >> Self::WAY_BITS
    }

    /// Which of its slots.
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
    /// The bucket it is looked for first.
    pub first: u32,
    /// The other one, or the same.
    pub second: u32,
}

impl Candidates {
    /// Those of a key in a table of so many buckets. `seed` is secret, so that no sender can fill a bucket on purpose.
    #[inline(always)]
    pub fn of<A: Address>(key: &FlowKey<A>, seed: u64, buckets: u32) -> Self {
        let hash = key.hash(seed);
        let again = mix(hash, seed);
        // The high half of a product is an even choice without a division (Lemire, "Fast random integer generation in an
        // interval", ACM Transactions on Modeling and Computer Simulation 29(1), 2019).
        let choose = |hash: u64| (((hash >> 32) * u64::from(buckets)) >> 32) as u32;
        Self { tag: hash as u32 | 1, first: choose(hash), second: choose(again) }
    }
}

const _: () = {
    assert!(size_of::<Bucket>() == 64);
    assert!(size_of::<Table>() == 64);
};

#[cfg(test)]
mod tests;
