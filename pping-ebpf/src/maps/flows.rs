//! Flows and DNS queries.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, LruHashMap, PerCpuArray, Stack},
};
use pping_common::{
    dns::{Query, QueryKey},
    flow::{Address, Cold, HotEntry, Ipv4, Ipv6},
    parse::Family,
    rtt::PendingEntry,
    table::{Bucket, Slot, Table},
};

use crate::shared::Shared;

/// The maps of an address family.
macro_rules! family {
    (
        $address:ty:
        $flows:ident, $cold:ident, $index:ident, $free:ident, $pending:ident, $free_pending:ident, $recent:ident,
        $queries:ident
    ) => {
        #[map]
        static $flows: Array<HotEntry<$address>> = Array::with_max_entries(1, BPF_F_MMAPABLE);

        #[map]
        static $cold: Array<Cold> = Array::with_max_entries(1, BPF_F_MMAPABLE);

        #[map]
        static $index: Array<Bucket> = Array::with_max_entries(1, BPF_F_MMAPABLE);

        #[map]
        static $free: Stack<u32> = Stack::with_max_entries(1, 0);

        #[map]
        static $pending: Array<PendingEntry> = Array::with_max_entries(1, BPF_F_MMAPABLE);

        #[map]
        static $free_pending: Stack<u32> = Stack::with_max_entries(1, 0);

        #[map]
        static $recent: PerCpuArray<RecentFlow> = PerCpuArray::with_max_entries(1, 0);

        #[map]
        pub(crate) static $queries: LruHashMap<QueryKey<$address>, Query> =
            LruHashMap::with_max_entries(1, 0);

        impl Flows for $address {
            #[inline(always)]
            fn entry(number: u32) -> Option<Shared<HotEntry<Self>>> {
                // SAFETY: a value of a map.
                $flows.get_ptr_mut(number).map(|entry| unsafe { Shared::new(entry) })
            }

            #[inline(always)]
            fn cold(number: u32) -> Option<Shared<Cold>> {
                // SAFETY: a value of a map.
                $cold.get_ptr_mut(number).map(|cold| unsafe { Shared::new(cold) })
            }

            #[inline(always)]
            fn bucket(number: u32) -> Option<Shared<Bucket>> {
                // SAFETY: a value of a map.
                $index.get_ptr_mut(number).map(|bucket| unsafe { Shared::new(bucket) })
            }

            #[inline(always)]
            fn pending(number: u32) -> Option<Shared<PendingEntry>> {
                // SAFETY: a value of a map.
                $pending.get_ptr_mut(number).map(|entry| unsafe { Shared::new(entry) })
            }

            #[inline(always)]
            fn free() -> &'static Stack<u32> {
                &$free
            }

            #[inline(always)]
            fn free_pending() -> &'static Stack<u32> {
                &$free_pending
            }

            #[inline(always)]
            fn recent(position: u32) -> Option<*mut RecentFlow> {
                $recent.get_ptr_mut(position)
            }

            #[inline(always)]
            fn queries() -> &'static LruHashMap<QueryKey<Self>, Query> {
                &$queries
            }
        }
    };
}

// Each family has its own maps: hashing costs more for longer keys, and most traffic should not pay for IPv6 addresses.
// Maps that can be mapped to user space begin at a page, so that their elements are aligned to cache lines.
family!(Ipv4: FLOWS_V4, COLD_V4, INDEX_V4, FREE_V4, PENDING_V4, FREE_PENDING_V4, RECENT_V4, QUERIES_V4);
family!(Ipv6: FLOWS_V6, COLD_V6, INDEX_V6, FREE_V6, PENDING_V6, FREE_PENDING_V6, RECENT_V6, QUERIES_V6);

/// Seed, size and use of the two tables.
#[map]
static TABLES: Array<Table> = Array::with_max_entries(2, BPF_F_MMAPABLE);

/// The occupant of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Occupant {
    /// The tag of its key, or 0 if the slot is free.
    pub(crate) tag: u32,
    /// The number of its entry.
    pub(crate) entry: u32,
}

/// A flow that this CPU inserted.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RecentFlow {
    /// Its slot.
    pub(crate) slot: Slot,
    /// The tag of its key, or 0 for none.
    pub(crate) tag: u32,
}

/// An address family's flows, and its queries.
pub(crate) trait Flows: Address + PartialEq + 'static {
    /// The key and the hot part of a flow.
    fn entry(number: u32) -> Option<Shared<HotEntry<Self>>>;

    /// The cold part of a flow, by the same number.
    fn cold(number: u32) -> Option<Shared<Cold>>;

    /// A bucket of the table.
    fn bucket(number: u32) -> Option<Shared<Bucket>>;

    /// An entry of the pool of pending entries.
    fn pending(number: u32) -> Option<Shared<PendingEntry>>;

    /// The stack of free numbers of flows.
    fn free() -> &'static Stack<u32>;

    /// The stack of free numbers of the pool's entries.
    fn free_pending() -> &'static Stack<u32>;

    /// An element of this CPU's ring of recent flows. A new flow replaces the oldest, which is evicted if it is still unanswered.
    fn recent(position: u32) -> Option<*mut RecentFlow>;

    /// Pending DNS queries. If the map is full, the least recently used one makes room. The agent makes the map larger
    /// if DNS is measured.
    fn queries() -> &'static LruHashMap<QueryKey<Self>, Query>;
}

/// The table of a family.
#[inline(always)]
pub(crate) fn table(family: Family) -> Option<Shared<Table>> {
    // SAFETY: a value of a map.
    TABLES.get_ptr_mut(family as u32).map(|table| unsafe { Shared::new(table) })
}
