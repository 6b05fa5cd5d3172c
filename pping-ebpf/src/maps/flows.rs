//! Flows and DNS queries.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, HashMap, Stack},
};
use pping_common::{
    dns::{PendingQuery, QueryKey},
    flow::{Cold, HotEntry},
    parse::{Address, Family, Ipv4, Ipv6},
    rtt::PendingEntry,
    series::SeriesRef,
    table::{Bucket, Slot, Table},
};

use crate::shared::prelude::*;

/// The maps of an address family.
macro_rules! family {
    (
        $address:ty:
        $flows:ident, $cold:ident, $index:ident, $free:ident, $pending:ident, $free_pending:ident, $recent:ident,
        $queries:ident, $query_keys:ident, $networks:ident
    ) => {
        #[map]
        static $flows: Array<HotEntry<$address>> = Array::with_max_entries(1, BPF_F_MMAPABLE);

        #[map]
        static $cold: Array<Cold> = Array::with_max_entries(1, BPF_F_MMAPABLE);

        #[map]
        static $networks: Array<[SeriesRef; 2]> = Array::with_max_entries(1, 0);

        #[map]
        static $index: Array<Bucket> = Array::with_max_entries(1, BPF_F_MMAPABLE);

        #[map]
        static $free: Stack<u32> = Stack::with_max_entries(1, 0);

        #[map]
        static $pending: Array<PendingEntry> = Array::with_max_entries(1, BPF_F_MMAPABLE);

        #[map]
        static $free_pending: Stack<u32> = Stack::with_max_entries(1, 0);

        #[map]
        static $recent: Array<u64> = Array::with_max_entries(1, 0);

        #[map]
        pub(crate) static $queries: HashMap<QueryKey<$address>, PendingQuery> =
            HashMap::with_max_entries(1, 0);

        #[map]
        static $query_keys: Array<QueryKey<$address>> = Array::with_max_entries(1, 0);

        impl Flows for $address {
            #[inline(always)]
            fn entry(number: u32) -> Option<Shared<HotEntry<Self>>> {
                $flows.shared(number)
            }

            #[inline(always)]
            fn cold(number: u32) -> Option<Shared<Cold>> {
                $cold.shared(number)
            }

            #[inline(always)]
            fn networks(number: u32) -> Option<Shared<[SeriesRef; 2]>> {
                $networks.shared(number)
            }

            #[inline(always)]
            fn bucket(number: u32) -> Option<Shared<Bucket>> {
                $index.shared(number)
            }

            #[inline(always)]
            fn pending(number: u32) -> Option<Shared<PendingEntry>> {
                $pending.shared(number)
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
            fn recent(place: u32) -> Option<Shared<u64>> {
                $recent.shared(place)
            }

            #[inline(always)]
            fn queries() -> &'static HashMap<QueryKey<Self>, PendingQuery> {
                &$queries
            }

            #[inline(always)]
            fn query_key(place: u32) -> Option<Shared<QueryKey<Self>>> {
                $query_keys.shared(place)
            }
        }
    };
}

// Each family has its own maps: hashing costs more for longer keys, and most traffic should not pay for IPv6 addresses.
// Maps that can be mapped to user space begin at a page, so that their elements are aligned to cache lines.
family!(Ipv4: FLOWS_V4, COLD_V4, INDEX_V4, FREE_V4, PENDING_V4, FREE_PENDING_V4, RECENT_V4, QUERIES_V4, QUERY_KEYS_V4, FLOW_NETWORKS_V4);
family!(Ipv6: FLOWS_V6, COLD_V6, INDEX_V6, FREE_V6, PENDING_V6, FREE_PENDING_V6, RECENT_V6, QUERIES_V6, QUERY_KEYS_V6, FLOW_NETWORKS_V6);

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

/// A flow in a ring: its slot, and the tag of its key above that; 0 for none. It is one number, so that it is replaced at
/// once.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct RecentFlow(pub(crate) u64);

impl RecentFlow {
    #[inline(always)]
    pub(crate) fn new(slot: Slot, tag: u32) -> Self {
        Self(u64::from(tag) << 32 | u64::from(slot.0))
    }

    /// Its slot.
    #[inline(always)]
    pub(crate) fn slot(self) -> Slot {
        Slot(self.0 as u32)
    }

    /// The tag of its key, or 0 for none.
    #[inline(always)]
    pub(crate) fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// An address family's flows, and its queries.
pub(crate) trait Flows: Address + PartialEq + 'static {
    /// The key and the hot part of a flow.
    fn entry(number: u32) -> Option<Shared<HotEntry<Self>>>;

    /// The cold part of a flow, by the same number.
    fn cold(number: u32) -> Option<Shared<Cold>>;

    /// The series of the networks at the other end, by the same number and by [`Endpoint`](pping_common::flow::Endpoint). The agent
    /// makes the map larger if networks are counted.
    fn networks(number: u32) -> Option<Shared<[SeriesRef; 2]>>;

    /// A bucket of the table.
    fn bucket(number: u32) -> Option<Shared<Bucket>>;

    /// An entry of the pool of pending entries.
    fn pending(number: u32) -> Option<Shared<PendingEntry>>;

    /// The stack of free numbers of flows.
    fn free() -> &'static Stack<u32>;

    /// The stack of free numbers of the pool's entries.
    fn free_pending() -> &'static Stack<u32>;

    /// A place in the rings of flows: the number of a [`RecentFlow`].
    fn recent(place: u32) -> Option<Shared<u64>>;

    /// Pending DNS queries. The agent makes the map larger if DNS is measured.
    fn queries() -> &'static HashMap<QueryKey<Self>, PendingQuery>;

    /// A place in the rings of queries: the key of the query that took it.
    fn query_key(place: u32) -> Option<Shared<QueryKey<Self>>>;
}

/// The table of a family.
#[inline(always)]
pub(crate) fn table(family: Family) -> Option<Shared<Table>> {
    TABLES.shared(family as u32)
}
