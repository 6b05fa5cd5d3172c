//! What is fixed before the programs are loaded. The agent sets most of it, as the user asked for; to the verifier these are
//! constants, and what they switch off costs nothing.

use aya_ebpf::Global;
use pping_common::{
    abi::{Emit, Offsets},
    group::Grouping,
    limits::RESERVED_SERIES,
    parse::{Decap, Scope},
    rtt::Rules,
};

use crate::launder::launder_ptr;

#[unsafe(no_mangle)]
static RULES: Global<Rules> = Global::new(Rules::UNLIMITED);

/// How to measure and how often to record, and whether packets to this host are timed.
#[inline(always)]
pub(crate) fn rules() -> &'static Rules {
    in_place(&RULES)
}

#[unsafe(no_mangle)]
static SCOPE: Global<Scope> = Global::new(Scope::ALL);

/// Which packets to look into.
#[inline(always)]
pub(crate) fn scope() -> &'static Scope {
    in_place(&SCOPE)
}

/// What the agent set, read where it is: what is copied to the stack byte by byte is no constant any more to older
/// verifiers.
#[inline(always)]
fn in_place<T>(global: &'static Global<T>) -> &'static T {
    // SAFETY: a `Global` is its value and nothing else, and only changes before the programs are loaded. The compiler, which knows
    // what it is before that, loses sight of it here.
    unsafe { &*launder_ptr((&raw const *global).cast()) }
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
static MAX_SERIES: Global<u32> = Global::new(RESERVED_SERIES);

/// Series that there is room for.
#[inline(always)]
pub(crate) fn max_series() -> u32 {
    MAX_SERIES.load()
}

#[unsafe(no_mangle)]
static EXCLUDES: Global<u32> = Global::new(0);

/// Whether some prefixes are left out.
#[inline(always)]
pub(crate) fn excludes() -> bool {
    EXCLUDES.load() != 0
}

#[unsafe(no_mangle)]
static LEASE: Global<u64> = Global::new(0);

/// The lease in ticks (`jiffies`); 0 where programs end with the agent.
#[inline(always)]
pub(crate) fn lease() -> u64 {
    LEASE.load()
}

#[unsafe(no_mangle)]
static UNANSWERED: Global<u32> = Global::new(1);

/// Unanswered flows for each CPU and address family; not 0.
#[inline(always)]
pub(crate) fn unanswered() -> u32 {
    UNANSWERED.load()
}

#[unsafe(no_mangle)]
static RESIDENCE: Global<u32> = Global::new(0);

/// Whether times in this host are measured.
#[inline(always)]
pub(crate) fn has_residence() -> bool {
    RESIDENCE.load() != 0
}

#[unsafe(no_mangle)]
static RESIDENCE_EVERY: Global<u32> = Global::new(0);

/// One packet in this many is followed through its queue, in the mean. It is not 0 where packets are followed.
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

/// Where the running kernel has what is read of its structures.
#[inline(always)]
pub(crate) fn offsets() -> &'static Offsets {
    in_place(&OFFSETS)
}
