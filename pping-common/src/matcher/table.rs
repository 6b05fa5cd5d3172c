//! The flows of an address family.

use std::hash::Hash;

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::{observer::Observer, rings::Rings};
use crate::{
    flow::{Facts, Flow, FlowKey},
    limits::SECOND,
    parse::{Address, Segment},
};

/// The time that a packet may be behind the newest of its flow before the clock counts as set back, ns.
const SETBACK: u64 = SECOND;

/// A flow, and when its newest packet came.
pub(super) struct Entry {
    pub(super) flow: Flow,
    newest: u64,
    /// The second of the latest packet.
    last_seen: u64,
    /// Whether any packet of each endpoint has counted in that second.
    pub(super) has_counted: [bool; 2],
}

impl Entry {
    /// Creates a flow whose first packet came at `now`.
    pub(super) fn new(facts: Facts, now: u64, second: u64) -> Self {
        Self { flow: Flow::new(facts), newest: now, last_seen: second, has_counted: [false; 2] }
    }

    /// Takes the time of a packet. `number` is the flow's IP protocol number.
    #[inline]
    pub(super) fn touch(&mut self, number: u8, now: u64, second: u64) {
        if self.last_seen != second {
            // The kernel programs sweep once a second.
            self.flow.hot.sweep_hooks(number == Segment::NUMBER, core::mem::take(&mut self.has_counted));
        }
        self.last_seen = second;
        if self.newest.saturating_sub(now) > SETBACK {
            self.flow.set_clock_back(number);
            self.newest = now;
        }
        self.newest = self.newest.max(now);
    }

    /// Whether the flow has been idle too long by this second.
    #[inline]
    fn is_expired(&self, number: u8, second: u64) -> bool {
        // If the count of seconds was set back, the flow is not idle.
        let idle = second.saturating_sub(self.last_seen);
        self.flow.hot.is_expired(number, u32::try_from(idle).unwrap_or(u32::MAX))
    }
}

/// The flows of a family. Their order depends on the packets alone, so the same capture gives the same output. The hash has a
/// seed of its own, so no capture can be made to collide.
pub(super) struct Table<A> {
    flows: IndexMap<FlowKey<A>, Entry, RandomState>,
    /// The second of the last sweep.
    swept: u64,
    /// The rings of new flows.
    rings: Rings<FlowKey<A>>,
}

impl<A> Default for Table<A> {
    fn default() -> Self {
        Self { flows: IndexMap::default(), swept: 0, rings: Rings::default() }
    }
}

impl<A: Address + Eq + Hash> Table<A> {
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns the index of a flow. A flow that has been idle too long is removed instead, even if no sweep has visited it.
    #[inline]
    pub(super) fn lookup(
        &mut self,
        key: &FlowKey<A>,
        now: u64,
        second: u64,
        observer: &mut impl Observer,
    ) -> Option<usize> {
        let (index, _, entry) = self.flows.get_full(key)?;
        if !entry.is_expired(key.protocol, second) {
            return Some(index);
        }
        self.remove(index, now, observer);
        None
    }

    /// The entry at an index.
    #[inline]
    pub(super) fn get(&mut self, index: usize) -> Option<&mut Entry> {
        self.flows.get_index_mut(index).map(|(_, entry)| entry)
    }

    /// The index of a flow, even if it has been idle too long.
    pub(super) fn index(&self, key: &FlowKey<A>) -> Option<usize> {
        self.flows.get_index_of(key)
    }

    /// Gives a new flow a place in a ring of `places`, and evicts the oldest there if that is not proved yet and finds no other
    /// place.
    pub(super) fn enter_ring(
        &mut self,
        key: FlowKey<A>,
        (ring, places): (u32, u32),
        observer: &mut impl Observer,
    ) {
        let flows = &self.flows;
        let is_newcomer = |other: &FlowKey<A>, _| {
            *other != key && flows.get(other).is_some_and(|entry| !entry.flow.hot.is_proved(other.protocol))
        };
        if let Some(old) = self.rings.enter(ring, places, key, is_newcomer).evicted {
            self.flows.swap_remove(&old);
            observer.evicted::<A>();
        }
    }

    /// Inserts a flow; `None` if there are `max_flows` already, and none of them has been idle too long.
    pub(super) fn insert(
        &mut self,
        key: FlowKey<A>,
        entry: Entry,
        max_flows: usize,
        (now, second): (u64, u64),
        observer: &mut impl Observer,
    ) -> Option<()> {
        // Idle time is counted in seconds, so one sweep a second finds all.
        if self.len() >= max_flows && self.swept != second {
            self.sweep(now, second, observer);
        }
        if self.len() >= max_flows {
            return None;
        }
        self.flows.insert(key, entry);
        Some(())
    }

    /// Removes the flows that have been idle too long.
    pub(super) fn sweep(&mut self, now: u64, second: u64, observer: &mut impl Observer) {
        self.swept = second;
        // From the end, since the last flow moves to the index of one that is removed.
        for index in (0..self.flows.len()).rev() {
            let is_expired = self
                .flows
                .get_index(index)
                .is_some_and(|(key, entry)| entry.is_expired(key.protocol, second));
            if is_expired {
                self.remove(index, now, observer);
            }
        }
    }

    fn remove(&mut self, index: usize, now: u64, observer: &mut impl Observer) {
        if let Some((key, mut entry)) = self.flows.swap_remove_index(index) {
            observer.expired(&key, &mut entry.flow, entry.newest, now);
        }
    }

    /// Has all flows flushed.
    pub(super) fn flush(&mut self, observer: &mut impl Observer) {
        for (key, entry) in &mut self.flows {
            observer.flush(key, &mut entry.flow);
        }
    }

    /// Removes all flows: there are no more packets.
    pub(super) fn finish(&mut self, observer: &mut impl Observer) {
        for (key, mut entry) in self.flows.drain(..) {
            observer.still_open(&key, &mut entry.flow, entry.newest);
        }
    }
}

// What the documentation of `Matcher` says that a flow takes.
const _: () = assert!(size_of::<(FlowKey<crate::parse::Ipv6>, Entry)>() <= 640);
