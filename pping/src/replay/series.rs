//! What is aggregated: the same as in the kernel programs' array of series.

use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use pping_common::{
    abi::{Counters, Purpose, SeriesKey, SeriesRef, Tally, Traffic},
    flow::{Address, Flow, FlowKey, Side},
    group::{GroupKey, Grouping},
    limits::{RESERVED_SERIES, SERIES_PER_GROUP},
    parse::{IpAddress, Segment},
    rtt::Method,
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
    /// How many there may be, but for those of no group and of what there was no room for.
    capacity: usize,
    /// Changes when places do, so that flows look for theirs again.
    generation: u32,
    kept: IndexMap<SeriesKey, Kept, RandomState>,
}

/// What decides on the series of samples and packets of a flow direction.
pub(super) struct Belonging {
    pub(super) interface: u16,
    pub(super) method: Method,
    /// Where echoes are seen, as the number of a hook.
    pub(super) hook: u8,
    /// Codepoint of the echoes.
    pub(super) dscp: u8,
    /// The host that replies.
    pub(super) source: IpAddress,
    /// The host whose packets are timed.
    pub(super) destination: IpAddress,
}

impl Series {
    pub(super) fn new(grouping: Grouping, labels: Arc<Lookup>, max_groups: u32) -> Self {
        let capacity = max_groups as usize * SERIES_PER_GROUP as usize;
        Self { grouping, labels, capacity, generation: 0, kept: IndexMap::default() }
    }

    /// The series with this place.
    pub(super) fn key(&self, place: u32) -> Option<&SeriesKey> {
        self.kept.get_index(place as usize).map(|(key, _)| key)
    }

    /// All of them that have something.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&SeriesKey, &Tally)> {
        self.kept.iter().map(|(key, kept)| (key, &kept.tally)).filter(|(_, tally)| !tally.is_empty())
    }

    /// Takes what they have got, at `now`, and forgets those that have had nothing for `timeout`.
    pub(super) fn take(&mut self, now: u64, timeout: u64) -> Vec<(SeriesKey, Tally)> {
        let mut taken = Vec::new();
        let before = self.kept.len();
        self.kept.retain(|key, kept| {
            if !kept.tally.is_empty() {
                taken.push((*key, std::mem::replace(&mut kept.tally, Tally::EMPTY)));
                kept.taken_at = now;
            }
            now.saturating_sub(kept.taken_at) < timeout
        });
        if self.kept.len() != before {
            self.generation = self.generation.wrapping_add(1);
        }
        taken
    }

    /// Takes a sample of what a side sends, and returns the place of its series if there is one.
    pub(super) fn sample(
        &mut self,
        cached: &mut SeriesRef,
        belonging: &Belonging,
        rtt: u64,
        counters: &mut Counters,
    ) -> Option<u32> {
        let place = self.find(cached, belonging, counters);
        match place.and_then(|place| self.tally(place)) {
            Some(tally) => tally.sample(rtt),
            None => counters.unaggregated += 1,
        }
        place
    }

    /// Takes what a flow sent since the last time, each way. A side that never sent a packet has no series, nor has one
    /// that is not timed.
    pub(super) fn fold<A: Address>(
        &mut self,
        key: &FlowKey<A>,
        flow: &mut Flow,
        include_local: bool,
        counters: &mut Counters,
    ) {
        let (low, high) = (flow.low.fold(), flow.high.fold());
        if (low, high) == (Traffic::default(), Traffic::default()) {
            return;
        }
        let method = if key.protocol == Segment::NUMBER { Method::TcpTs } else { Method::IcmpEcho };
        let addresses = |side| match side {
            Side::Low => (key.high.to_address(), key.low.to_address()),
            Side::High => (key.low.to_address(), key.high.to_address()),
        };
        for (side, sent, received) in [(Side::Low, low, high), (Side::High, high, low)] {
            if !flow.may_have_samples(side, include_local) {
                continue;
            }
            let (source, destination) = addresses(side);
            let belonging = Belonging {
                interface: key.interface,
                method,
                hook: flow.matched_at(side),
                dscp: flow.direction(side.other()).latest.dscp,
                source,
                destination,
            };
            let cached = match side {
                Side::Low => &mut flow.low.series,
                Side::High => &mut flow.high.series,
            };
            if let Some(tally) = self.find(cached, &belonging, counters).and_then(|place| self.tally(place)) {
                tally.sent.add(&sent);
                tally.received.add(&received);
            }
        }
    }

    fn tally(&mut self, place: u32) -> Option<&mut Tally> {
        self.kept.get_index_mut(place as usize).map(|(_, kept)| &mut kept.tally)
    }

    /// The place of a series; that of what there was no room for, if there is none for its group.
    fn find(
        &mut self,
        cached: &mut SeriesRef,
        belonging: &Belonging,
        counters: &mut Counters,
    ) -> Option<u32> {
        let &Belonging { interface, method, hook, dscp, source, destination } = belonging;
        let class = if self.grouping.by_dscp == 0 { 0 } else { dscp };
        let purpose = Purpose::new(self.generation, method as u8, hook, class);
        // A purpose does not tell an unknown hook from the others.
        if cached.is_for(purpose) && self.key(cached.index()).is_some_and(|key| key.hook == hook) {
            return Some(cached.index());
        }
        let group = self.grouping.key(source, destination, dscp, |address| self.labels.label(address));
        let key = SeriesKey { group, interface, method: method as u8, hook, reserved: 0 };
        let place = self.place(key).or_else(|| {
            counters.groups_refused += 1;
            self.place(SeriesKey { group: GroupKey::OTHER, ..key })
        })?;
        *cached = SeriesRef::new(place, 0, purpose);
        Some(place)
    }

    /// The place of a series, which is given one if it has none and there is room.
    fn place(&mut self, key: SeriesKey) -> Option<u32> {
        if let Some(place) = self.kept.get_index_of(&key) {
            return Some(place as u32);
        }
        let is_reserved = [GroupKey::ALL, GroupKey::OTHER].contains(&key.group);
        let reserved = if is_reserved { RESERVED_SERIES as usize } else { 0 };
        if self.kept.len() >= self.capacity + reserved {
            return None;
        }
        let (place, _) = self.kept.insert_full(key, Kept { tally: Tally::EMPTY, taken_at: 0 });
        Some(place as u32)
    }
}
