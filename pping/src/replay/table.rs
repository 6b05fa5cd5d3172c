//! The flows of an address family.

use std::hash::Hash;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use pping_common::{
    flow::{Address, Flow, FlowKey, Ipv4, Ipv6},
    limits::SECOND,
};

use super::report::Report;

/// How far behind the newest packet of its flow one may be before the clock is taken to have been set back, ns.
const SETBACK: u64 = SECOND;

/// A flow, and when its newest packet came.
pub(super) struct Entry {
    pub(super) flow: Flow,
    newest: u64,
}

impl Entry {
    /// A flow of which nothing is known but which sides are `local` (as [`Flow::local`]), and the time of a packet.
    pub(super) fn new(local: u32, now: u64) -> Self {
        Self { flow: Flow { local, ..Flow::EMPTY }, newest: now }
    }

    /// Takes the time of a packet.
    #[inline]
    pub(super) fn see(&mut self, now: u64, second: u32) {
        self.flow.last_seen = second;
        if self.newest.saturating_sub(now) > SETBACK {
            self.flow.set_clock_back();
            self.newest = now;
        }
        self.newest = self.newest.max(now);
    }
}

/// The flows of a family, in the order in which they came, so that the same capture gives the same output; hashed with
/// a seed of its own, so that no capture can be made to collide.
pub(super) struct Table<A> {
    flows: IndexMap<FlowKey<A>, Entry, RandomState>,
    /// The second of the last sweep.
    swept: u32,
    /// The flows that were made, the last of them: a ring, so that each finds out whether the one in its place was ever answered.
    begun: Vec<FlowKey<A>>,
    /// Where the next is noted.
    next_begun: usize,
}

impl<A> Default for Table<A> {
    fn default() -> Self {
        Self { flows: IndexMap::default(), swept: 0, begun: Vec::new(), next_begun: 0 }
    }
}

impl<A: Address + Eq + Hash> Table<A> {
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Where a flow is. One that has been idle too long is forgotten instead, whether or not a sweep came by.
    #[inline]
    pub(super) fn find(
        &mut self,
        key: &FlowKey<A>,
        now: u64,
        second: u32,
        report: &mut Report,
    ) -> Option<usize> {
        let (index, _, entry) = self.flows.get_full(key)?;
        if !entry.flow.is_expired(key.protocol, second) {
            return Some(index);
        }
        self.forget(index, now, report);
        None
    }

    /// What is at an index.
    #[inline]
    pub(super) fn get(&mut self, index: usize) -> Option<&mut Entry> {
        self.flows.get_index_mut(index).map(|(_, entry)| entry)
    }

    /// The index of a flow that is there.
    pub(super) fn index(&self, key: &FlowKey<A>) -> Option<usize> {
        self.flows.get_index_of(key)
    }

    /// Notes a new flow in place of one that was made `places` flows before, and deletes that if nobody has answered it since.
    pub(super) fn evict_unanswered(&mut self, key: FlowKey<A>, places: usize, report: &mut Report) {
        let Some(place) = self.begun.get_mut(self.next_begun % places) else {
            self.begun.push(key);
            self.next_begun += 1;
            return;
        };
        self.next_begun = (self.next_begun + 1) % places;
        let old = std::mem::replace(place, key);
        if old != key
            && let Some((index, _, entry)) = self.flows.get_full(&old)
            && entry.flow.is_unanswered()
        {
            self.flows.swap_remove_index(index);
            report.counters.entries_deleted[A::FAMILY as usize] += 1;
            report.counters.evicted += 1;
        }
    }

    /// Adds a flow; `None` when there are `max_flows` already, and all of them live.
    pub(super) fn insert(
        &mut self,
        key: FlowKey<A>,
        entry: Entry,
        max_flows: usize,
        (now, second): (u64, u32),
        report: &mut Report,
    ) -> Option<()> {
        // Within a second no flow comes to be idle too long.
        if self.len() >= max_flows && self.swept != second {
            self.sweep(now, second, report);
        }
        if self.len() >= max_flows {
            return None;
        }
        self.flows.insert(key, entry);
        Some(())
    }

    /// Forgets the flows that have been idle too long.
    pub(super) fn sweep(&mut self, now: u64, second: u32, report: &mut Report) {
        self.swept = second;
        // From the end, since the last takes the place of one that goes.
        for index in (0..self.flows.len()).rev() {
            let is_expired = self
                .flows
                .get_index(index)
                .is_some_and(|(key, entry)| entry.flow.is_expired(key.protocol, second));
            if is_expired {
                self.forget(index, now, report);
            }
        }
    }

    fn forget(&mut self, index: usize, now: u64, report: &mut Report) {
        if let Some((key, mut entry)) = self.flows.swap_remove_index(index) {
            report.expired(&key, &mut entry.flow, entry.newest, now);
        }
    }

    /// Adds what all flows have sent to their series.
    pub(super) fn fold(&mut self, report: &mut Report) {
        for (key, entry) in &mut self.flows {
            report.fold(key, &mut entry.flow);
        }
    }

    /// Forgets all flows, as nothing more is to come.
    pub(super) fn finish(&mut self, report: &mut Report) {
        for (key, mut entry) in self.flows.drain(..) {
            report.cut_off(&key, &mut entry.flow, entry.newest);
        }
    }
}

/// The flows of both families.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) v4: Table<Ipv4>,
    pub(super) v6: Table<Ipv6>,
}
