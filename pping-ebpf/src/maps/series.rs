//! Series and their groups.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC, BPF_NOEXIST},
    macros::map,
    maps::{Array, HashMap, LpmTrie, Queue, lpm_trie::Key},
};
use pping_common::{
    abi::{Control, PersistentEntry, PersistentKey},
    group::{GroupKey, LabelKey},
    hash::SipKey,
    limits::{MAX_INSIDE_PREFIXES, MAX_LABELLED_PREFIXES, RESERVED_SERIES},
    parse::IpAddress,
    pool::{BinBlock, BinPool},
    series::{Series, SeriesKey},
};

use crate::shared::prelude::*;

/// The agent's control of running programs. The agent maps this and the series into its memory, and writes to them without system
/// calls.
#[map]
static CONTROL: Array<Control> = Array::with_max_entries(1, BPF_F_MMAPABLE);

#[map]
static SERIES: Array<Series> = Array::with_max_entries(RESERVED_SERIES, BPF_F_MMAPABLE);

/// The bins of the series.
#[map]
static BINS: Array<BinBlock> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// How many blocks of bins are taken.
#[map]
static BIN_POOL: Array<BinPool> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The persistent counts of metrics. With pinned maps, the agent keeps them for its successor. They take memory as they fill.
#[map]
static PERSISTENT: HashMap<PersistentKey, PersistentEntry> = HashMap::with_max_entries(1, BPF_F_NO_PREALLOC);

/// The indexes of series, by [`SeriesKey::hash`].
#[map]
static SERIES_INDEX: HashMap<u64, u32> = HashMap::with_max_entries(RESERVED_SERIES, 0);

/// Indexes of series that were in use and are free again.
#[map]
static FREE_SERIES: Queue<u32> = Queue::with_max_entries(RESERVED_SERIES, 0);

/// The groups that have their own series. Its size is the limit of groups.
#[map]
static GROUPS: HashMap<GroupKey, u32> = HashMap::with_max_entries(1, 0);

/// Those of them that only flows have that are not proved yet. Its size is the limit of these.
#[map]
static UNPROVED: HashMap<GroupKey, u32> = HashMap::with_max_entries(1, 0);

/// The labels of prefixes.
#[map]
static LABELS: LpmTrie<LabelKey, u32> = LpmTrie::with_max_entries(MAX_LABELLED_PREFIXES, 0);

/// The prefixes whose hosts are inside the network.
#[map]
static INSIDE: LpmTrie<LabelKey, u32> = LpmTrie::with_max_entries(MAX_INSIDE_PREFIXES, 0);

/// The numbers of the networks at the other end, by prefix.
#[map]
static NETWORK_PREFIXES: LpmTrie<LabelKey, u32> = LpmTrie::with_max_entries(1, 0);

/// The networks that have their own series. Its size is their limit.
#[map]
static NETWORKS: HashMap<GroupKey, u32> = HashMap::with_max_entries(1, 0);

/// Those of them that only flows have that are not proved yet. Its size is the limit of these.
#[map]
static UNPROVED_NETWORKS: HashMap<GroupKey, u32> = HashMap::with_max_entries(1, 0);

/// The series to add to, in [`super::Scratch`].
pub(crate) struct SeriesTarget {
    /// The series.
    pub(crate) key: SeriesKey,
    /// Its index, or [`pping_common::abi::RttEvent::NO_SERIES`].
    pub(crate) index: u32,
    /// The bin of the sample. In memory, because otherwise the verifier would follow what comes next once per octave.
    pub(crate) bin: u32,
    /// The number of the block with that bin, plus 1; 0 if there is none yet.
    pub(crate) block: u32,
    /// The hosts of the sample, in memory for the same reason.
    pub(crate) hosts: u64,
}

/// The agent's control.
#[inline(always)]
pub(crate) fn control() -> Option<Shared<Control>> {
    CONTROL.shared(0)
}

/// The series at an index.
#[inline(always)]
pub(crate) fn series(index: u32) -> Option<Shared<Series>> {
    SERIES.shared(index)
}

/// A block of bins.
#[inline(always)]
pub(crate) fn bin_block(position: u32) -> Option<Shared<BinBlock>> {
    BINS.shared(position)
}

/// How many blocks of bins are taken.
#[inline(always)]
pub(crate) fn bin_pool() -> Option<Shared<BinPool>> {
    BIN_POOL.shared(0)
}

/// The index of a series, if it has one.
#[inline(always)]
pub(crate) fn series_index(key: &SeriesKey, secret: SipKey) -> Option<u32> {
    // SAFETY: a value is written once, before others can find it.
    let index = unsafe { SERIES_INDEX.get(key.hash(secret)) }.copied()?;
    // If two keys have the same hash, the second has neither index nor group.
    series(index)?.at(field!(Series, key)).has_words(key).then_some(index)
}

/// Gives a series its index; `false` when it has one already.
#[inline(always)]
pub(crate) fn insert_series(key: &SeriesKey, secret: SipKey, index: &u32) -> bool {
    SERIES_INDEX.insert(key.hash(secret), index, u64::from(BPF_NOEXIST)).is_ok()
}

/// The groups, or the networks, that have their own series.
#[derive(Clone, Copy)]
pub(crate) struct Admitted {
    all: &'static HashMap<GroupKey, u32>,
    unproved: &'static HashMap<GroupKey, u32>,
}

/// The groups that have their own series.
#[inline(always)]
pub(crate) fn groups() -> Admitted {
    Admitted { all: &GROUPS, unproved: &UNPROVED }
}

/// The networks at the other end that have their own series.
#[inline(always)]
pub(crate) fn networks() -> Admitted {
    Admitted { all: &NETWORKS, unproved: &UNPROVED_NETWORKS }
}

impl Admitted {
    /// Whether a group is one of them.
    #[inline(always)]
    pub(crate) fn has(self, group: &GroupKey) -> bool {
        // SAFETY: only whether there is an entry matters; its value is not read.
        unsafe { self.all.get(group) }.is_some()
    }

    /// Enters a group; `false` when there are too many.
    #[inline(always)]
    pub(crate) fn insert(self, group: &GroupKey) -> bool {
        // Another CPU may have inserted it first, so an existing entry is no error.
        self.all.insert(group, &0, 0).is_ok()
    }

    /// Enters a group among those of flows that are not proved yet; `false` when there are too many.
    #[inline(always)]
    pub(crate) fn insert_unproved(self, group: &GroupKey) -> bool {
        self.unproved.insert(group, &0, 0).is_ok()
    }

    /// Removes a group from those of flows that are not proved yet.
    #[inline(always)]
    pub(crate) fn prove(self, group: &GroupKey) {
        // SAFETY: only whether there is an entry matters; its value is not read.
        if unsafe { self.unproved.get(group) }.is_some() {
            // Another CPU may have removed it first.
            let _ = self.unproved.remove(group);
        }
    }
}

/// Takes an index that was in use and is free again.
#[inline(always)]
pub(crate) fn take_free_series() -> Option<u32> {
    FREE_SERIES.pop().ok().flatten()
}

/// Frees an index.
#[inline(always)]
pub(crate) fn give_free_series(index: &u32) {
    // The queue has room for all indexes, so this fails only if another CPU keeps it busy. Then the index is lost.
    let _ = FREE_SERIES.push(index, 0);
}

/// The number of an address's label, by longest-prefix match; 0 if it has none.
#[inline(always)]
pub(crate) fn label(generation: u32, address: IpAddress) -> u32 {
    LABELS.get(Key::new(LabelKey::BITS, LabelKey::new(generation, address))).copied().unwrap_or(0)
}

/// The number of an address's network, by longest-prefix match; 0 if it is in none.
#[inline(always)]
pub(crate) fn network(address: IpAddress) -> u32 {
    NETWORK_PREFIXES.get(Key::new(LabelKey::BITS, LabelKey::new(0, address))).copied().unwrap_or(0)
}

/// Whether a listed prefix of the network contains an address.
#[inline(always)]
pub(crate) fn is_listed_inside(address: IpAddress) -> bool {
    INSIDE.get(Key::new(LabelKey::BITS, LabelKey::new(0, address))).is_some()
}
