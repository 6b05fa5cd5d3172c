//! What is aggregated: the same as in the kernel programs' array of series.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use pping_common::{
    abi::{Counters, Purpose, SeriesKey, SeriesRef, Tally, Traffic},
    flow::{Address, Endpoint, Flow, FlowKey},
    group::{GroupKey, Grouping},
    parse::IpAddress,
    rtt::{Method, Rules},
};

use crate::groups::Lookup;

/// A series, and when something was last taken from it.
struct Kept {
    tally: Tally,
    taken_at: u64,
}

/// The series there are.
pub(super) struct Series {
    grouping: Grouping,
    labels: Arc<Lookup>,
    /// How many groups are told apart.
    max_groups: usize,
    /// Those that are, and how many series each has.
    groups: HashMap<GroupKey, usize, RandomState>,
    /// Changes when places do, so that flows look for theirs again.
    generation: u32,
    kept: IndexMap<SeriesKey, Kept, RandomState>,
}

/// What decides on the series of samples and packets of a flow direction.
pub(super) struct Belonging {
    pub(super) interface: u16,
    pub(super) method: Method,
    /// Where echoes are seen, as the number of a direction.
    pub(super) direction: u8,
    /// Codepoint of the echoes.
    pub(super) dscp: u8,
    /// The host that replies.
    pub(super) source: IpAddress,
    /// The host whose packets are timed.
    pub(super) destination: IpAddress,
}

impl Series {
    pub(super) fn new(grouping: Grouping, labels: Arc<Lookup>, max_groups: u32) -> Self {
        Self {
            grouping,
            labels,
            max_groups: max_groups as usize,
            groups: HashMap::default(),
            generation: 0,
            kept: IndexMap::default(),
        }
    }

    /// The series with this index.
    pub(super) fn key(&self, index: u32) -> Option<&SeriesKey> {
        self.kept.get_index(index as usize).map(|(key, _)| key)
    }

    /// All of them that have something.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&SeriesKey, &Tally)> {
        self.kept.iter().map(|(key, kept)| (key, &kept.tally)).filter(|(_, tally)| !tally.is_empty())
    }

    /// Takes what they have got, at `now`, and forgets those that have had nothing for `timeout`.
    pub(super) fn take(&mut self, now: u64, timeout: u64) -> Vec<(SeriesKey, Tally)> {
        let mut taken = Vec::new();
        let before = self.kept.len();
        let groups = &mut self.groups;
        self.kept.retain(|key, kept| {
            if !kept.tally.is_empty() {
                taken.push((*key, std::mem::replace(&mut kept.tally, Tally::EMPTY)));
                kept.taken_at = now;
            }
            let is_kept = now.saturating_sub(kept.taken_at) < timeout;
            if !is_kept && let Some(series) = groups.get_mut(&key.group) {
                *series -= 1;
                if *series == 0 {
                    groups.remove(&key.group);
                }
            }
            is_kept
        });
        if self.kept.len() != before {
            self.generation = self.generation.wrapping_add(1);
        }
        taken
    }

    /// Takes a sample of what a side sends, and returns the index of its series if there is one.
    pub(super) fn sample(
        &mut self,
        cached: &mut SeriesRef,
        belonging: &Belonging,
        rtt: u64,
        counters: &mut Counters,
    ) -> Option<u32> {
        let index = self.find(cached, belonging, counters);
        match index.and_then(|index| self.tally(index)) {
            Some(tally) => tally.sample(rtt),
            None => counters.unaggregated += 1,
        }
        index
    }

    /// Takes what a flow sent since the last time, each way. A side that never sent a packet has no series, nor has one
    /// that is not timed.
    pub(super) fn fold<A: Address>(
        &mut self,
        key: &FlowKey<A>,
        flow: &mut Flow,
        rules: &Rules,
        counters: &mut Counters,
    ) {
        let (low, high) = (flow.low.fold(), flow.high.fold());
        if (low, high) == (Traffic::default(), Traffic::default()) {
            return;
        }
        let method = flow.method(key.protocol, rules.methods);
        let addresses = |endpoint| match endpoint {
            Endpoint::Low => (key.high.to_address(), key.low.to_address()),
            Endpoint::High => (key.low.to_address(), key.high.to_address()),
        };
        for (endpoint, sent, received) in [(Endpoint::Low, low, high), (Endpoint::High, high, low)] {
            if !flow.may_have_samples(endpoint, rules.include_local) {
                continue;
            }
            let (source, destination) = addresses(endpoint);
            let belonging = Belonging {
                interface: key.interface,
                method,
                direction: flow.matched_at(endpoint),
                dscp: flow.direction(endpoint.other()).latest.dscp,
                source,
                destination,
            };
            let cached = match endpoint {
                Endpoint::Low => &mut flow.low.series,
                Endpoint::High => &mut flow.high.series,
            };
            if let Some(tally) = self.find(cached, &belonging, counters).and_then(|index| self.tally(index)) {
                tally.sent.add(&sent);
                tally.received.add(&received);
            }
        }
    }

    fn tally(&mut self, index: u32) -> Option<&mut Tally> {
        self.kept.get_index_mut(index as usize).map(|(_, kept)| &mut kept.tally)
    }

    /// The index of a series; that of what there was no room for, if there is none for its group.
    fn find(
        &mut self,
        cached: &mut SeriesRef,
        belonging: &Belonging,
        counters: &mut Counters,
    ) -> Option<u32> {
        let &Belonging { interface, method, direction, dscp, source, destination } = belonging;
        let class = if self.grouping.by_dscp == 0 { 0 } else { dscp };
        let purpose = Purpose::new(self.generation, method as u8, direction, class);
        // A purpose does not tell an unknown direction from the others.
        if cached.is_for(purpose) && self.key(cached.index()).is_some_and(|key| key.direction == direction) {
            return Some(cached.index());
        }
        let group = self.grouping.key(source, destination, dscp, |address| self.labels.label(address));
        let key = SeriesKey { group, interface, method: method as u8, direction, reserved: 0 };
        let index = self.index_of(key).or_else(|| {
            counters.groups_refused += 1;
            self.index_of(SeriesKey { group: GroupKey::OTHER, ..key })
        })?;
        *cached = SeriesRef::new(index, 0, purpose);
        Some(index)
    }

    /// Whether a group is told apart, as it is if there still is room for one.
    fn is_admitted(&self, group: &GroupKey) -> bool {
        let is_always_there = [GroupKey::ALL, GroupKey::OTHER].contains(group);
        is_always_there || self.groups.contains_key(group) || self.told_apart() < self.max_groups
    }

    /// How many groups are told apart, beside what there was no room for.
    fn told_apart(&self) -> usize {
        self.groups.len() - usize::from(self.groups.contains_key(&GroupKey::OTHER))
    }

    /// The index of a series, which is given one if it has none and there is room for its group.
    fn index_of(&mut self, key: SeriesKey) -> Option<u32> {
        if let Some(index) = self.kept.get_index_of(&key) {
            return Some(index as u32);
        }
        if !self.is_admitted(&key.group) || self.kept.len() >= SeriesRef::MAX_SERIES as usize {
            return None;
        }
        *self.groups.entry(key.group).or_default() += 1;
        let (index, _) = self.kept.insert_full(key, Kept { tally: Tally::EMPTY, taken_at: 0 });
        Some(index as u32)
    }
}
