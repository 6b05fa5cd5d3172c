//! Options that are fixed before the programs are loaded. The agent sets most of them, as the user asked. To the
//! verifier they are constants, so what they switch off costs nothing.

use aya_ebpf::Global;
use pping_common::{
    abi::{Emit, InterfaceRoom, Offsets},
    group::Grouping,
    hash::TableKeys,
    limits::{DEFAULT_MAX_INTERFACES, RESERVED_SERIES},
    parse::{Decap, Scope},
    rtt::Rules,
};

use crate::barrier::barrier_ptr;

#[unsafe(no_mangle)]
static RULES: Global<Rules> = Global::new(Rules::UNLIMITED);

/// How to measure and how often to record, and whether packets to this host are timed.
#[inline(always)]
pub(crate) fn rules() -> &'static Rules {
    in_place(&RULES)
}

#[unsafe(no_mangle)]
static TABLE_KEYS: Global<TableKeys> = Global::new(TableKeys::NONE);

/// The secret keys by which flows are found.
#[inline(always)]
pub(crate) fn table_keys() -> &'static TableKeys {
    in_place(&TABLE_KEYS)
}

#[unsafe(no_mangle)]
static SCOPE: Global<Scope> = Global::new(Scope::ALL);

/// Which packets to look into.
#[inline(always)]
pub(crate) fn scope() -> &'static Scope {
    in_place(&SCOPE)
}

/// Returns what the agent set, without a copy: to older verifiers, a value that is copied to the stack byte by byte is
/// no longer a constant.
#[inline(always)]
fn in_place<T>(global: &'static Global<T>) -> &'static T {
    // SAFETY: a `Global` is its value and nothing else, and changes only before the programs are loaded. A barrier
    // keeps the compiler from using the initial value.
    unsafe { &*barrier_ptr((&raw const *global).cast()) }
}

#[unsafe(no_mangle)]
static DECAP: Global<Decap> = Global::new(Decap::NONE);

/// Which tunnels to look into.
#[inline(always)]
pub(crate) fn decap() -> Decap {
    DECAP.load()
}

#[unsafe(no_mangle)]
static EMIT: Global<Emit> = Global::new(Emit(Emit::SAMPLES.0 | Emit::FLOWS.0));

/// Which events to emit.
#[inline(always)]
pub(crate) fn emit() -> Emit {
    EMIT.load()
}

#[unsafe(no_mangle)]
static GROUPING: Global<Grouping> = Global::new(Grouping::NONE);

/// How samples are grouped.
#[inline(always)]
pub(crate) fn grouping() -> Grouping {
    GROUPING.load()
}

#[unsafe(no_mangle)]
static MAX_INTERFACES: Global<u32> = Global::new(DEFAULT_MAX_INTERFACES);

/// How many interfaces the maps have room for.
#[inline(always)]
pub(crate) fn max_interfaces() -> u32 {
    MAX_INTERFACES.load()
}

#[unsafe(no_mangle)]
static LAST_INTERFACE_ENTRY: Global<u32> = Global::new(InterfaceRoom::of(DEFAULT_MAX_INTERFACES).last_entry);

/// The number of the last entry of the table of interfaces.
#[inline(always)]
pub(crate) fn last_interface_entry() -> u32 {
    LAST_INTERFACE_ENTRY.load()
}

#[unsafe(no_mangle)]
static MAX_SERIES: Global<u32> = Global::new(RESERVED_SERIES);

/// The number of series that the maps have room for.
#[inline(always)]
pub(crate) fn max_series() -> u32 {
    MAX_SERIES.load()
}

#[unsafe(no_mangle)]
static HAS_NETWORKS: Global<u32> = Global::new(0);

/// Whether samples are counted by the network at the other end, too.
#[inline(always)]
pub(crate) fn has_networks() -> bool {
    HAS_NETWORKS.load() != 0
}

#[unsafe(no_mangle)]
static EXCLUDES: Global<u32> = Global::new(0);

/// Whether any prefixes are excluded.
#[inline(always)]
pub(crate) fn excludes() -> bool {
    EXCLUDES.load() != 0
}

#[unsafe(no_mangle)]
static COPIES_WITHIN: Global<u64> = Global::new(0);

/// Nanoseconds within which a packet that passes again is a copy, which is left out; 0 leaves none out.
#[inline(always)]
pub(crate) fn copies_within() -> u64 {
    COPIES_WITHIN.load()
}

#[unsafe(no_mangle)]
static LEASE: Global<u64> = Global::new(0);

/// The length of the lease in ticks (`jiffies`); 0 if the programs end with the agent.
#[inline(always)]
pub(crate) fn lease() -> u64 {
    LEASE.load()
}

#[unsafe(no_mangle)]
static UNPROVED_PLACES: Global<u32> = Global::new(1);

/// The places in each ring of flows; not 0.
#[inline(always)]
pub(crate) fn unproved_places() -> u32 {
    UNPROVED_PLACES.load()
}

#[unsafe(no_mangle)]
static QUERY_PLACES: Global<u32> = Global::new(1);

/// The places in each ring of DNS queries; not 0.
#[inline(always)]
pub(crate) fn query_places() -> u32 {
    QUERY_PLACES.load()
}

#[unsafe(no_mangle)]
static RESIDENCE: Global<u32> = Global::new(0);

/// Whether residence times are measured.
#[inline(always)]
pub(crate) fn has_residence() -> bool {
    RESIDENCE.load() != 0
}

#[unsafe(no_mangle)]
static RESIDENCE_EVERY: Global<u32> = Global::new(0);

/// On average, one packet in this many is followed through its queue. Not 0 if packets are followed.
#[inline(always)]
pub(crate) fn residence_every() -> u32 {
    RESIDENCE_EVERY.load()
}

#[unsafe(no_mangle)]
static OFFSETS: Global<Offsets> = Global::new(Offsets {
    skb_next: 0,
    skb_head: 0,
    skb_network_header: 0,
    queue_dev: 0,
    dev_ifindex: 0,
    dev_mtu: 0,
    dev_net: 0,
    net_inum: 0,
    namespace: 0,
});

/// The offsets of the fields that are read in the running kernel's structures.
#[inline(always)]
pub(crate) fn offsets() -> &'static Offsets {
    in_place(&OFFSETS)
}
