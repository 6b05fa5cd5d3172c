//! Series, as the kernel programs keep them in their array.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use pping_common::{
    abi::{Counters, SeriesSelector},
    flow::{Endpoint, Flow, FlowKey},
    group::{GroupKey, Grouping},
    hash::SipKey,
    limits::max_unproved_groups,
    parse::{Address, Segment},
    rtt::Rules,
    series::{SeriesCounts, SeriesKey, SeriesRef, Traffic, host_bit},
};

use crate::groups::Lookup;

/// The key of [`host_bit`]: no secret, so that the same file has the same result each time.
const HOST_KEY: SipKey = [1, 0];

/// The counts of a series, and when they were last taken, ns.
struct Entry {
    counts: SeriesCounts,
    taken_at: u64,
}

/// All series.
pub(super) struct Series {
    grouping: Grouping,
    labels: Arc<Lookup>,
    /// The prefixes whose hosts are inside the network.
    inside: Lookup,
    /// The highest number of groups, without the group `other`.
    max_groups: usize,
    /// The number of series of each group.
    groups: HashMap<GroupKey, usize, RandomState>,
    /// The groups that only flows have that are not proved yet.
    unproved: HashSet<GroupKey, RandomState>,
    /// Changes when indices change, so that flows look up their series again.
    generation: u32,
    entries: IndexMap<SeriesKey, Entry, RandomState>,
}

impl Series {
    pub(super) fn new(grouping: Grouping, labels: Arc<Lookup>, inside: Lookup, max_groups: u32) -> Self {
        Self {
            grouping,
            labels,
            inside,
            max_groups: max_groups as usize,
            groups: HashMap::default(),
            unproved: HashSet::default(),
            generation: 0,
            entries: IndexMap::default(),
        }
    }

    /// The series with this index.
    pub(super) fn key(&self, index: u32) -> Option<&SeriesKey> {
        self.entries.get_index(index as usize).map(|(key, _)| key)
    }

    /// The series that are not empty.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&SeriesKey, &SeriesCounts)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.counts)).filter(|(_, counts)| !counts.is_empty())
    }

    /// Takes what was added to the series since the last call, at `now`. A series to which nothing was added for `timeout` ns is
    /// removed.
    pub(super) fn take(&mut self, now: u64, timeout: u64) -> Vec<(SeriesKey, SeriesCounts)> {
        let mut taken = Vec::new();
        let before = self.entries.len();
        let (groups, unproved) = (&mut self.groups, &mut self.unproved);
        self.entries.retain(|key, entry| {
            if !entry.counts.is_empty() {
                taken.push((*key, std::mem::replace(&mut entry.counts, SeriesCounts::EMPTY)));
                entry.taken_at = now;
            }
            let is_kept = now.saturating_sub(entry.taken_at) < timeout;
            if !is_kept && let Some(series) = groups.get_mut(&key.group) {
                *series -= 1;
                if *series == 0 {
                    groups.remove(&key.group);
                    unproved.remove(&key.group);
                }
            }
            is_kept
        });
        if self.entries.len() != before {
            self.generation = self.generation.wrapping_add(1);
        }
        taken
    }

    /// Adds a sample to its series. Returns the index of the series; `None` if there was no room for it.
    pub(super) fn sample(
        &mut self,
        reference: &mut SeriesRef,
        selector: &SeriesSelector,
        rtt: u64,
        counters: &mut Counters,
    ) -> Option<u32> {
        let index = self.find(reference, selector, counters);
        let hosts = if self.grouping.is_on() { host_bit(selector.source, HOST_KEY) } else { 0 };
        match index.and_then(|index| self.counts(index)) {
            Some(counts) => counts.sample(rtt, hosts),
            None => counters.unaggregated += 1,
        }
        index
    }

    /// Adds the traffic of a flow since the last call to its series, and calls `consider` for each flow direction.
    pub(super) fn flush<A: Address>(
        &mut self,
        key: &FlowKey<A>,
        flow: &mut Flow,
        rules: &Rules,
        counters: &mut Counters,
        mut consider: impl FnMut(&Flow, Endpoint, &SeriesSelector, &Traffic),
    ) {
        let [low, high] = flow.flush(key.protocol == Segment::NUMBER);
        if (low, high) == (Traffic::default(), Traffic::default()) {
            return;
        }
        for (timed, sent, received) in [(Endpoint::Low, low, high), (Endpoint::High, high, low)] {
            let has_reply = flow.sent(timed.other()).packets > 0;
            let state = (&flow.hot, &flow.locked);
            let Some(mut selector) = SeriesSelector::of_flow(key, state, timed, has_reply, rules) else {
                continue;
            };
            if !flow.has_direction[if has_reply { timed.other() } else { timed } as usize] {
                selector.direction = SeriesKey::NO_DIRECTION;
            }
            let reference = &mut flow.totals[timed as usize].series;
            if let Some(counts) =
                self.find(reference, &selector, counters).and_then(|index| self.counts(index))
            {
                counts.sent.add(&sent);
                counts.received.add(&received);
            }
            consider(flow, timed, &selector, &sent);
        }
    }

    fn counts(&mut self, index: u32) -> Option<&mut SeriesCounts> {
        self.entries.get_index_mut(index as usize).map(|(_, entry)| &mut entry.counts)
    }

    /// Returns the index of a series, or that of the group `other` if there is no room for its own.
    fn find(
        &mut self,
        reference: &mut SeriesRef,
        selector: &SeriesSelector,
        counters: &mut Counters,
    ) -> Option<u32> {
        let purpose = selector.purpose(self.grouping, self.generation);
        // A purpose does not tell an unknown direction from the others.
        if reference.is_for(purpose)
            && self.key(reference.index()).is_some_and(|key| key.direction == selector.direction)
        {
            return Some(reference.index());
        }
        let grouping = self.grouping;
        let mut key = SeriesKey::NONE;
        let (label, is_inside) =
            (|address| self.labels.label(address), |address| self.inside.contains(address));
        selector.write_key(&mut key, grouping, label, is_inside);
        let index = self.index_of(key, selector.is_proved).or_else(|| {
            counters.groups_refused += 1;
            self.index_of(SeriesKey { group: GroupKey::OTHER, ..key }, selector.is_proved)
        })?;
        *reference = SeriesRef::new(index, 0, purpose);
        Some(index)
    }

    /// Whether a group may have its own series: it has some already, or there is room for another group.
    fn is_admitted(&mut self, group: &GroupKey, is_proved: bool) -> bool {
        if [GroupKey::ALL, GroupKey::OTHER].contains(group) || self.groups.contains_key(group) {
            return true;
        }
        let max_unproved = max_unproved_groups(self.max_groups as u32) as usize;
        let is_inserted =
            self.groups() < self.max_groups && (is_proved || self.unproved.len() < max_unproved);
        if is_inserted && !is_proved {
            self.unproved.insert(*group);
        }
        is_inserted
    }

    /// The number of groups, without the group `other`.
    fn groups(&self) -> usize {
        self.groups.len() - usize::from(self.groups.contains_key(&GroupKey::OTHER))
    }

    /// Returns the index of a series. A new series gets one if there is room for its group.
    fn index_of(&mut self, key: SeriesKey, is_proved: bool) -> Option<u32> {
        if is_proved {
            self.unproved.remove(&key.group);
        }
        if let Some(index) = self.entries.get_index_of(&key) {
            return Some(index as u32);
        }
        if !self.is_admitted(&key.group, is_proved) || self.entries.len() >= SeriesRef::MAX_SERIES as usize {
            return None;
        }
        *self.groups.entry(key.group).or_default() += 1;
        let (index, _) = self.entries.insert_full(key, Entry { counts: SeriesCounts::EMPTY, taken_at: 0 });
        Some(index as u32)
    }
}
