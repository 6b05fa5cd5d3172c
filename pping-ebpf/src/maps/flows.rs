//! The flows of an address family, and its DNS queries. The agent sets the sizes when it loads the programs.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, LruHashMap, PerCpuArray, Stack},
};
use pping_common::{
    dns::{Query, QueryKey},
    flow::{Address, Ipv4, Ipv6},
    parse::Family,
    table::{Bucket, Entry, Slot, Table},
};

/// Flows are kept apart by family: hashing cost follows key length, and most traffic need not pay for
/// IPv6 addresses it does not have. Maps that can be mapped begin at a page, so that their elements keep to cache lines.
#[map]
static FLOWS_V4: Array<Entry> = Array::with_max_entries(1, BPF_F_MMAPABLE);

#[map]
static FLOWS_V6: Array<Entry> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The buckets of their slots. The agent looks here for flows that a sweep has to visit.
#[map]
static INDEX_V4: Array<Bucket> = Array::with_max_entries(1, BPF_F_MMAPABLE);

#[map]
static INDEX_V6: Array<Bucket> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// A stack of free entries.
#[map]
static FREE_V4: Stack<u32> = Stack::with_max_entries(1, 0);

#[map]
static FREE_V6: Stack<u32> = Stack::with_max_entries(1, 0);

/// Seed, size and use of the two tables.
#[map]
static TABLES: Array<Table> = Array::with_max_entries(2, BPF_F_MMAPABLE);

/// A ring of the newest flows that this CPU inserted: each replaces the oldest in it, which is evicted if it is still unanswered.
#[map]
static RECENT_V4: PerCpuArray<RecentFlow> = PerCpuArray::with_max_entries(1, 0);

#[map]
static RECENT_V6: PerCpuArray<RecentFlow> = PerCpuArray::with_max_entries(1, 0);

/// The occupant of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Occupant {
    /// The tag of its key, or 0 if the slot is free.
    pub(crate) tag: u32,
    /// The number of its entry.
    pub(crate) entry: u32,
}

/// A flow that was inserted.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RecentFlow {
    /// Its slot.
    pub(crate) slot: Slot,
    /// The occupant of the slot when the flow was inserted.
    pub(crate) occupant: Occupant,
}

/// DNS queries that wait for their response, the least recently used making room. The agent makes this larger if DNS is
/// measured.
#[map]
pub(crate) static QUERIES_V4: LruHashMap<QueryKey<Ipv4>, Query> = LruHashMap::with_max_entries(1, 0);

#[map]
pub(crate) static QUERIES_V6: LruHashMap<QueryKey<Ipv6>, Query> = LruHashMap::with_max_entries(1, 0);

/// An address family's flows, and its queries.
pub(crate) trait Flows: Address + PartialEq + 'static {
    /// The flows.
    fn map() -> &'static Array<Entry>;

    /// The buckets of their slots.
    fn index() -> &'static Array<Bucket>;

    /// The stack of free entries.
    fn free() -> &'static Stack<u32>;

    /// The DNS queries.
    fn queries() -> &'static LruHashMap<QueryKey<Self>, Query>;

    /// The newest flows that this CPU inserted.
    fn recent() -> &'static PerCpuArray<RecentFlow>;
}

impl Flows for Ipv4 {
    #[inline(always)]
    fn map() -> &'static Array<Entry> {
        &FLOWS_V4
    }

    #[inline(always)]
    fn index() -> &'static Array<Bucket> {
        &INDEX_V4
    }

    #[inline(always)]
    fn free() -> &'static Stack<u32> {
        &FREE_V4
    }

    #[inline(always)]
    fn queries() -> &'static LruHashMap<QueryKey<Self>, Query> {
        &QUERIES_V4
    }

    #[inline(always)]
    fn recent() -> &'static PerCpuArray<RecentFlow> {
        &RECENT_V4
    }
}

impl Flows for Ipv6 {
    #[inline(always)]
    fn map() -> &'static Array<Entry> {
        &FLOWS_V6
    }

    #[inline(always)]
    fn index() -> &'static Array<Bucket> {
        &INDEX_V6
    }

    #[inline(always)]
    fn free() -> &'static Stack<u32> {
        &FREE_V6
    }

    #[inline(always)]
    fn queries() -> &'static LruHashMap<QueryKey<Self>, Query> {
        &QUERIES_V6
    }

    #[inline(always)]
    fn recent() -> &'static PerCpuArray<RecentFlow> {
        &RECENT_V6
    }
}

/// The table of a family.
#[inline(always)]
pub(crate) fn table(family: Family) -> Option<*mut Table> {
    TABLES.get_ptr_mut(family as u32)
}
