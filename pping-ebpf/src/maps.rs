//! The maps. The agent sets the sizes of the flow maps when it loads the programs.

use core::arch::asm;

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_NOEXIST},
    macros::map,
    maps::{Array, HashMap, LpmTrie, LruHashMap, PerCpuArray, Queue, RingBuf, Stack, lpm_trie::Key},
};
use pping_common::{
    abi::{
        Control, Counters, Interface, InterfaceName, LedgerEntry, Series, SeriesKey, SweepRequest, Traffic,
        entry,
    },
    dns::{Query, QueryKey},
    flow::{Address, Changes, Endpoint, Ipv4, Ipv6, Noted},
    group::{GroupKey, LabelKey},
    limits::{
        INTERFACE_PROBES, INTERFACE_TABLE, MAX_DUE, MAX_EXCLUDED_PREFIXES, MAX_INTERFACES,
        MAX_LABELLED_PREFIXES, MAX_LOCAL_ADDRESSES, RESERVED_SERIES, RING_BYTES,
    },
    parse::{Family, Frame, IpAddress, Untracked},
    rtt::{Effect, MatchPlan, Measured},
    table::{Bucket, Entry, Slot, Table},
};

use crate::{
    aggregate::{Belonging, Membership},
    emit::State,
    sweep::Sweep,
    table::Occupant,
};

#[map]
pub(crate) static EVENTS: RingBuf = RingBuf::with_byte_size(RING_BYTES, 0);

/// Flows are kept apart by family: hashing cost follows key length, and most traffic need not pay for
/// IPv6 addresses it does not have. Maps that can be mapped begin at a page, so that their elements keep to cache lines.
#[map]
static FLOWS_V4: Array<Entry> = Array::with_max_entries(1, BPF_F_MMAPABLE);

#[map]
static FLOWS_V6: Array<Entry> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Where they are. The agent looks here for those that a sweep has to come to.
#[map]
static INDEX_V4: Array<Bucket> = Array::with_max_entries(1, BPF_F_MMAPABLE);

#[map]
static INDEX_V6: Array<Bucket> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The numbers of entries that were handed out and are free again, the last of them first.
#[map]
static FREE_V4: Stack<u32> = Stack::with_max_entries(1, 0);

#[map]
static FREE_V6: Stack<u32> = Stack::with_max_entries(1, 0);

/// What the two tables are like.
#[map]
static TABLES: Array<Table> = Array::with_max_entries(2, BPF_F_MMAPABLE);

/// The flows that this CPU made, the last of them: a ring, so that each finds out whether the one in its place was ever
/// answered.
#[map]
static RECENT_V4: PerCpuArray<RecentFlow> = PerCpuArray::with_max_entries(1, 0);

#[map]
static RECENT_V6: PerCpuArray<RecentFlow> = PerCpuArray::with_max_entries(1, 0);

/// A flow that was made.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RecentFlow {
    /// Where it is.
    pub(crate) slot: Slot,
    /// What is there, or was.
    pub(crate) occupant: Occupant,
}

/// The DNS queries that wait for their response. One that was asked long ago makes room. The agent makes this larger if it
/// is used at all.
#[map]
pub(crate) static QUERIES_V4: LruHashMap<QueryKey<Ipv4>, Query> = LruHashMap::with_max_entries(1, 0);

#[map]
pub(crate) static QUERIES_V6: LruHashMap<QueryKey<Ipv6>, Query> = LruHashMap::with_max_entries(1, 0);

#[map]
static INTERFACES: Array<Interface> = Array::with_max_entries(INTERFACE_TABLE, 0);

/// The names of interfaces by interface id: notes of the agent, which finds them again where they are pinned.
#[map]
static INTERFACE_NAMES: Array<InterfaceName> = Array::with_max_entries(MAX_INTERFACES, 0);

#[map]
static COUNTERS: PerCpuArray<Counters> = PerCpuArray::with_max_entries(MAX_INTERFACES, 0);

/// This host's addresses. Looked at once per flow.
#[map]
static LOCAL_ADDRESSES: HashMap<[u8; 16], u8> = HashMap::with_max_entries(MAX_LOCAL_ADDRESSES, 0);

#[map]
static SCRATCH: PerCpuArray<Scratch> = PerCpuArray::with_max_entries(1, 0);

/// The packet that a CPU is busy with. In a map for the verifier's sake: what is read back from there has
/// no history, so what follows is verified once instead of once for each way of getting there.
pub(crate) struct Scratch {
    /// The packet, taken apart.
    pub(crate) frame: Frame,
    /// Whether it could be.
    pub(crate) parsed: Result<(), Untracked>,
    /// What it changed in the life of its flow.
    pub(crate) changes: Changes,
    /// What it means for its flow beside that.
    pub(crate) noted: Noted,
    /// What it could have to do with what is measured.
    pub(crate) effect: Effect,
    /// What is to be done to measure.
    pub(crate) plan: MatchPlan,
    /// What it matched and recorded.
    pub(crate) measured: Measured,
    /// And by its sequence numbers, where it was measured by timestamps before.
    pub(crate) second: Measured,
    /// What its flow was like then.
    pub(crate) state: State,
    /// The series of its sample.
    pub(crate) series: Membership,
    /// Who sent it.
    pub(crate) from: Endpoint,
    /// Where its flow is.
    pub(crate) slot: Slot,
    /// What is there.
    pub(crate) occupant: Occupant,
    /// Where the last new flow was noted, by family.
    pub(crate) recent: [u32; 2],
}

/// The same for the sweep, which a packet may interrupt.
#[map]
static SWEEP_SCRATCH: PerCpuArray<SweepScratch> = PerCpuArray::with_max_entries(1, 0);

/// The flow that a sweep is busy with.
pub(crate) struct SweepScratch {
    /// What the low side sent since the last sweep.
    pub(crate) low: Traffic,
    /// What the high side sent.
    pub(crate) high: Traffic,
    /// What decides on the series of one of them.
    pub(crate) belonging: Belonging,
    /// That series.
    pub(crate) series: Membership,
}

/// The present sweep.
#[map]
static SWEEP: Array<Sweep> = Array::with_max_entries(1, 0);

/// What the next run of the sweep is for.
#[map]
static SWEEP_REQUEST: Array<SweepRequest> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The flows that it comes to.
#[map]
pub(crate) static DUE: Array<u64> = Array::with_max_entries(MAX_DUE, BPF_F_MMAPABLE);

/// What the agent tells while programs run. It writes to this and to the series by a mapping into its memory, without
/// system calls.
#[map]
static CONTROL: Array<Control> = Array::with_max_entries(1, BPF_F_MMAPABLE);

#[map]
static SERIES: Array<Series> = Array::with_max_entries(RESERVED_SERIES, BPF_F_MMAPABLE);

/// What has been told in metrics: notes of the agent, which finds them again where they are pinned.
#[map]
static LEDGER: Array<LedgerEntry> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The indexes of series.
#[map]
static SERIES_INDEX: HashMap<SeriesKey, u32> = HashMap::with_max_entries(RESERVED_SERIES, 0);

/// Indexes of series that were in use and are free again.
#[map]
static FREE_SERIES: Queue<u32> = Queue::with_max_entries(RESERVED_SERIES, 0);

/// The groups that are told apart; nothing is known of them but that. Only as large as there are groups, so that when it
/// is full there are enough.
#[map]
pub(crate) static GROUPS: HashMap<GroupKey, u32> = HashMap::with_max_entries(1, 0);

/// The labels of prefixes.
#[map]
static LABELS: LpmTrie<LabelKey, u32> = LpmTrie::with_max_entries(MAX_LABELLED_PREFIXES, 0);

/// The prefixes that are left out.
#[map]
static EXCLUDED: LpmTrie<LabelKey, u32> = LpmTrie::with_max_entries(MAX_EXCLUDED_PREFIXES, 0);

/// The number of the present sweep.
#[map]
static SWEEPS: Array<u32> = Array::with_max_entries(1, 0);

/// An address family's flows, and its queries.
pub(crate) trait Flows: Address + PartialEq + 'static {
    /// The flows.
    fn map() -> &'static Array<Entry>;

    /// Where they are.
    fn index() -> &'static Array<Bucket>;

    /// The numbers of entries that are free again.
    fn free() -> &'static Stack<u32>;

    /// The queries that wait.
    fn queries() -> &'static LruHashMap<QueryKey<Self>, Query>;

    /// The flows that this CPU made.
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

/// What the table of a family is like.
#[inline(always)]
pub(crate) fn table(family: Family) -> Option<*mut Table> {
    TABLES.get_ptr_mut(family as u32)
}

/// A monitored interface.
#[inline(always)]
pub(crate) fn interface(ifindex: u32) -> Option<Interface> {
    for probe in 0..INTERFACE_PROBES {
        let interface = INTERFACES.get(entry(ifindex, probe))?;
        if interface.ifindex == ifindex {
            return Some(*interface);
        }
    }
    None
}

/// Room for the packet that this CPU is busy with.
#[inline(always)]
pub(crate) fn scratch() -> Option<&'static mut Scratch> {
    // SAFETY: this CPU's own, and softirqs are off while a packet is handled, so there is one user.
    SCRATCH.get_ptr_mut(0).map(|scratch| unsafe { &mut *scratch })
}

/// Keeps the compiler from carrying over in registers what was just written to the scratch space.
#[inline(always)]
pub(crate) fn launder<T>(scratch: &mut T) {
    // SAFETY: a move to itself, which might, as far as the compiler knows, have changed the value. (Without
    // any instruction its line would be that of the next one twice, which the kernel rejects.)
    unsafe { asm!("{0} = {0}", inout(reg) &raw mut *scratch => _, options(nostack)) };
}

/// The same of what is only read: where it is, without what was found out about it.
#[inline(always)]
pub(crate) fn launder_ptr<T>(mut place: *const T) -> *const T {
    // SAFETY: a move to itself.
    unsafe { asm!("{0} = {0}", inout(reg) place, options(nostack)) };
    place
}

/// This CPU's counters of an interface.
#[inline(always)]
pub(crate) fn counters(interface_id: u16) -> Option<*mut Counters> {
    COUNTERS.get_ptr_mut(u32::from(interface_id))
}

/// Whether an address is one of this host.
#[inline(always)]
pub(crate) fn is_local(address: IpAddress) -> bool {
    // SAFETY: only whether there is an entry matters; its value is not read.
    address.is_loopback() || unsafe { LOCAL_ADDRESSES.get(address.to_bytes()) }.is_some()
}

/// The same for the sweep.
#[inline(always)]
pub(crate) fn sweep_scratch() -> Option<&'static mut SweepScratch> {
    // SAFETY: this CPU's own, and only the agent's one sweep at a time uses it.
    SWEEP_SCRATCH.get_ptr_mut(0).map(|scratch| unsafe { &mut *scratch })
}

/// The present sweep.
#[inline(always)]
pub(crate) fn sweep() -> Option<*mut Sweep> {
    SWEEP.get_ptr_mut(0)
}

/// What the next run of the sweep is for.
#[inline(always)]
pub(crate) fn request() -> Option<*mut SweepRequest> {
    SWEEP_REQUEST.get_ptr_mut(0)
}

/// What the agent tells.
#[inline(always)]
pub(crate) fn control() -> Option<*mut Control> {
    CONTROL.get_ptr_mut(0)
}

/// The series at an index.
#[inline(always)]
pub(crate) fn series(index: u32) -> Option<*mut Series> {
    SERIES.get_ptr_mut(index)
}

/// The index of a series, if it has one.
#[inline(always)]
pub(crate) fn series_index(key: &SeriesKey) -> Option<u32> {
    // SAFETY: a value is written once, before others can find it.
    unsafe { SERIES_INDEX.get(key) }.copied()
}

/// Gives a series its index; `false` when it has one already.
#[inline(always)]
pub(crate) fn insert_series(key: &SeriesKey, index: u32) -> bool {
    SERIES_INDEX.insert(key, &index, u64::from(BPF_NOEXIST)).is_ok()
}

/// Tells a group apart from now on; `false` when there are enough.
#[inline(always)]
pub(crate) fn insert_group(group: &GroupKey) -> bool {
    // Another CPU may have been faster, so it need not be new.
    GROUPS.insert(group, &0, 0).is_ok()
}

/// An index that was in use and is free again.
#[inline(always)]
pub(crate) fn take_free_series() -> Option<u32> {
    FREE_SERIES.pop().ok().flatten()
}

/// Gives an index back.
#[inline(always)]
pub(crate) fn give_free_series(index: u32) {
    // There is room for all of them, so this fails when another CPU keeps the queue, and the index is lost.
    let _ = FREE_SERIES.push(&index, 0);
}

/// The number of an address' label, by the longest prefix; 0 if it has none.
#[inline(always)]
pub(crate) fn label(generation: u32, address: IpAddress) -> u32 {
    LABELS.get(Key::new(LabelKey::BITS, LabelKey::new(generation, address))).copied().unwrap_or(0)
}

/// Whether an address is to be left out.
#[inline(always)]
pub(crate) fn is_excluded(address: IpAddress) -> bool {
    EXCLUDED.get(Key::new(LabelKey::BITS, LabelKey::new(0, address))).is_some()
}

/// The number of the present sweep.
#[inline(always)]
pub(crate) fn sweeps() -> u32 {
    SWEEPS.get(0).copied().unwrap_or(0)
}

/// Begins the next sweep, and returns its number.
#[inline(always)]
pub(crate) fn begin_sweep() -> Option<u32> {
    let sweeps = SWEEPS.get_ptr_mut(0)?;
    // SAFETY: a valid, aligned pointer into the map; only the agent's one sweep at a time writes here.
    let sweeps = unsafe { &mut *sweeps };
    *sweeps = sweeps.wrapping_add(1);
    Some(*sweeps)
}
