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

use super::settings::Settings;
use crate::groups::{Lookup, Networks};

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
    /// The networks at the other end.
    networks: Networks,
    groups: Members,
    of_networks: Members,
    /// Changes when indices change, so that flows look up their series again.
    generation: u32,
    entries: IndexMap<SeriesKey, Entry, RandomState>,
}

impl Series {
    pub(super) fn new(settings: &Settings, inside: Lookup) -> Self {
        Self {
            grouping: settings.grouping,
            labels: Arc::clone(&settings.labels),
            inside,
            networks: settings.networks.clone(),
            groups: Members::new(settings.max_groups, GroupKey::OTHER),
            of_networks: Members::new(settings.max_networks, GroupKey::OTHER_NETWORKS),
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
        let (groups, networks) = (&mut self.groups, &mut self.of_networks);
        self.entries.retain(|key, entry| {
            if !entry.counts.is_empty() {
                taken.push((*key, std::mem::replace(&mut entry.counts, SeriesCounts::EMPTY)));
                entry.taken_at = now;
            }
            let is_kept = now.saturating_sub(entry.taken_at) < timeout;
            if !is_kept {
                let members = if key.group.is_network() { &mut *networks } else { &mut *groups };
                members.remove(&key.group);
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
        if let Some(counts) = self.counts_of_network(selector) {
            counts.sample(rtt, host_bit(selector.source, HOST_KEY));
        }
        index
    }

    /// The counts of the network at the other end; `None` if networks are not told apart.
    fn counts_of_network(&mut self, selector: &SeriesSelector) -> Option<&mut SeriesCounts> {
        if !self.networks.are_known() {
            return None;
        }
        let mut key = SeriesKey::NONE;
        let (label, is_inside) =
            (|address| self.labels.label(address), |address| self.inside.contains(address));
        let network = |address| self.networks.number(address);
        selector.write_network_key(&mut key, self.grouping, label, is_inside, network);
        let other = SeriesKey { group: GroupKey::OTHER_NETWORKS, ..key };
        let index =
            self.index_of(key, selector.is_proved).or_else(|| self.index_of(other, selector.is_proved))?;
        self.counts(index)
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
            if let Some(counts) = self.counts_of_network(&selector) {
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

    /// Returns the index of a series. A new series gets one if there is room for its group, or network.
    fn index_of(&mut self, key: SeriesKey, is_proved: bool) -> Option<u32> {
        let members = if key.group.is_network() { &mut self.of_networks } else { &mut self.groups };
        if is_proved {
            members.unproved.remove(&key.group);
        }
        if let Some(index) = self.entries.get_index_of(&key) {
            return Some(index as u32);
        }
        if self.entries.len() >= SeriesRef::MAX_SERIES as usize || !members.add(&key.group, is_proved) {
            return None;
        }
        let (index, _) = self.entries.insert_full(key, Entry { counts: SeriesCounts::EMPTY, taken_at: 0 });
        Some(index as u32)
    }
}

/// The groups, or the networks at the other end, that have series.
struct Members {
    /// Their highest number, without the remaining ones.
    max: u32,
    /// The key of the remaining ones.
    others: GroupKey,
    /// The number of series of each.
    series: HashMap<GroupKey, usize, RandomState>,
    /// Those that only flows have that are not proved yet.
    unproved: HashSet<GroupKey, RandomState>,
}

impl Members {
    fn new(max: u32, others: GroupKey) -> Self {
        Self { max, others, series: HashMap::default(), unproved: HashSet::default() }
    }

    /// Adds a series of a group, unless the group has none yet and there is no room for another one. Returns whether it did.
    fn add(&mut self, group: &GroupKey, is_proved: bool) -> bool {
        let is_limited = ![GroupKey::ALL, self.others].contains(group);
        if is_limited && !self.series.contains_key(group) {
            let others = usize::from(self.series.contains_key(&self.others));
            let has_room = self.series.len() - others < self.max as usize;
            let max_unproved = max_unproved_groups(self.max) as usize;
            if !has_room || !is_proved && self.unproved.len() >= max_unproved {
                return false;
            }
            if !is_proved {
                self.unproved.insert(*group);
            }
        }
        *self.series.entry(*group).or_default() += 1;
        true
    }

    /// Removes a series of a group.
    fn remove(&mut self, group: &GroupKey) {
        let Some(series) = self.series.get_mut(group) else { return };
        *series -= 1;
        if *series == 0 {
            self.series.remove(group);
            self.unproved.remove(group);
        }
    }
}
