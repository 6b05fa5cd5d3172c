//! A flow in its maps, which several CPUs use at once. See [`mod@crate::flow_guard`] for what needs the lock.

use pping_common::{
    abi::Counters,
    flow::{
        self, Behind, Cold, DirectionCounts, Endpoint, Events, FlowKey, FlowSnapshot, Hot, HotDirection,
        HotEntry, Latest, PendingNumber, Sent, Totals, is_expired,
    },
    parse::{Direction, Kind, Transport},
    rtt::{self, Pending, PendingEntry, PendingIdentifiers, PendingRange},
    series::{SeriesRef, Traffic},
};

use crate::{maps::Flows, shared::prelude::*, sync};

/// A flow, which other CPUs use at the same time.
#[derive(Clone, Copy)]
pub(crate) struct FlowRef<A: Flows> {
    entry: Shared<HotEntry<A>>,
    number: u32,
}

impl<A: Flows> FlowRef<A> {
    /// The flow with this number.
    #[inline(always)]
    pub(crate) fn new(number: u32) -> Option<Self> {
        Some(Self { entry: A::entry(number)?, number })
    }

    /// The hot part.
    #[inline(always)]
    pub(crate) fn hot(self) -> Shared<Hot> {
        self.entry.at(field!(HotEntry<A>, hot))
    }

    /// The cold part.
    #[inline(always)]
    pub(crate) fn cold(self) -> Option<Shared<Cold>> {
        A::cold(self.number)
    }

    /// The references to the series of the networks at the other end, of what each endpoint sends.
    #[inline(always)]
    pub(crate) fn networks(self) -> Option<Shared<[SeriesRef; 2]>> {
        A::networks(self.number)
    }

    /// Whether the flow has this key. A key that another CPU is writing is either not this one yet, or will be in a moment.
    #[inline(always)]
    pub(crate) fn has_key(self, key: &FlowKey<A>) -> bool {
        let written = self.entry.at(field!(HotEntry<A>, key)).behind_barrier();
        key.is_in(|word| written.word(word))
    }

    /// Copies the key.
    #[inline(always)]
    pub(crate) fn key_to(self, key: &mut FlowKey<A>) {
        self.entry.at(field!(HotEntry<A>, key)).load_to(key);
    }

    /// Replaces the key, which takes the lock.
    #[inline(always)]
    pub(crate) fn set_key(self, key: &FlowKey<A>) {
        self.entry.at(field!(HotEntry<A>, key)).store(key);
    }

    /// Reads what a packet of `from` looks at.
    #[inline(always)]
    pub(crate) fn snapshot(self, from: Endpoint) -> FlowSnapshot {
        let hot = self.hot();
        let directions = hot.at(field!(Hot, directions));
        let forward = directions.of(from);
        let reverse = directions.of(from.other());
        FlowSnapshot {
            forward: HotDirection {
                newest_tsval: forward.at(field!(HotDirection, newest_tsval)).read(),
                sequence_end: forward.at(field!(HotDirection, sequence_end)).read(),
                state: forward.at(field!(HotDirection, state)).read(),
            },
            reverse: reverse.at(field!(HotDirection, state)).read(),
            reverse_end: reverse.at(field!(HotDirection, sequence_end)).read(),
            latest: hot.at(field!(Hot, latest)).of(from).read(),
            reverse_latest: hot.at(field!(Hot, latest)).of(from.other()).read(),
            contended: hot.at(field!(Hot, contended)).read(),
            protocol_state: hot.at(field!(Hot, protocol_state)).read(),
        }
    }

    /// The pending timestamps of an endpoint, if the flow has an entry of the pool.
    #[inline(always)]
    pub(crate) fn pending(self, endpoint: Endpoint) -> Option<SharedPending> {
        let number = self.cold()?.at(field!(Cold, locked.pending)).read().get();
        let directions = A::pending(number)?.at(field!(PendingEntry, directions));
        Some(SharedPending(directions.of(endpoint)))
    }

    /// Where the latest segment of an endpoint ended that lies outside of its window.
    #[inline(always)]
    pub(crate) fn outside_end(self, endpoint: Endpoint) -> u32 {
        self.cold().map_or(0, |cold| {
            cold.at(field!(Cold, events)).of(endpoint).at(field!(Events, outside_end)).read()
        })
    }

    /// All that an endpoint sent.
    #[inline(always)]
    pub(crate) fn sent(self, cold: Shared<Cold>, endpoint: Endpoint) -> Sent {
        let totals = cold.at(field!(Cold, totals)).of(endpoint);
        // Another CPU may update the totals meanwhile, and processors read in any order: see `Sent`.
        let sent = Sent {
            packets: totals.at(field!(Totals, packets)).read(),
            bytes: totals.at(field!(Totals, bytes)).read(),
        };
        sent.with(self.traffic(endpoint).read())
    }

    /// What an endpoint sent, in one number.
    #[inline(always)]
    pub(crate) fn traffic(self, endpoint: Endpoint) -> Shared<u64> {
        self.hot().at(field!(Hot, traffic)).of(endpoint)
    }

    /// The word of the newest `TSval` of a direction.
    #[inline(always)]
    pub(crate) fn newest_tsval(self, from: Endpoint) -> Shared<u32> {
        let directions = self.hot().at(field!(Hot, directions));
        directions.of(from).at(field!(HotDirection, newest_tsval))
    }

    /// Whether the flow is proved.
    #[inline(always)]
    pub(crate) fn is_proved(self) -> bool {
        let directions = self.hot().at(field!(Hot, directions));
        let state = |endpoint| directions.of(endpoint).at(field!(HotDirection, state)).read();
        let number = self.entry.at(field!(HotEntry<A>, key.protocol)).read();
        flow::is_proved(state(Endpoint::Low), state(Endpoint::High), number)
    }

    /// Whether the flow, idle for this many sweeps, has expired.
    #[inline(always)]
    pub(crate) fn is_expired(self, idle: u32) -> bool {
        let directions = self.hot().at(field!(Hot, directions));
        let state = |endpoint| directions.of(endpoint).at(field!(HotDirection, state)).read();
        let number = self.entry.at(field!(HotEntry<A>, key.protocol)).read();
        is_expired(state(Endpoint::Low), state(Endpoint::High), number, idle)
    }

    /// Whether any identifier is pending.
    #[inline(always)]
    pub(crate) fn has_pending(self) -> bool {
        let directions = self.hot().at(field!(Hot, directions));
        directions.iter().any(|direction| direction.at(field!(HotDirection, state)).read().has_pending())
    }

    /// Whether the flow has an entry of the pool.
    #[inline(always)]
    pub(crate) fn has_pool_entry(self) -> bool {
        self.cold().is_some_and(|cold| cold.at(field!(Cold, locked.pending)).read().is_some())
    }

    /// When each direction last recorded, by the number of the flow's entry of the pool; 0 if the flow has no entry.
    #[inline(always)]
    pub(crate) fn recorded_at(pending: PendingNumber) -> [u64; 2] {
        A::pending(pending.get()).map_or([0; 2], |entry| entry.at(field!(PendingEntry, recorded_at)).load())
    }

    /// Brings the totals of an endpoint up to date, and returns what was added. Only the sweep does so.
    #[inline(always)]
    pub(crate) fn flush(self, cold: Shared<Cold>, endpoint: Endpoint, has_segments: bool) -> Traffic {
        let totals = cold.at(field!(Cold, totals)).of(endpoint);
        let events = cold.at(field!(Cold, events)).of(endpoint);
        let (before, rare) = (totals.load(), events.load());
        let traffic = flow::flush(&before, &rare, self.traffic(endpoint).read(), has_segments);
        totals.at(field!(Totals, packets)).write(before.packets.wrapping_add(traffic.packets));
        totals.at(field!(Totals, bytes)).write(before.bytes.wrapping_add(traffic.bytes));
        if has_segments {
            events.at(field!(Events, flushed_retransmissions)).write(rare.retransmissions);
        }
        events.at(field!(Events, flushed_ce_packets)).write(rare.ce_packets);
        traffic
    }

    /// Notes a packet that did not get the lock.
    #[inline(always)]
    pub(crate) fn note_contended(self, from: Endpoint, transport: &Transport) {
        let newest = self.newest_tsval(from);
        let known = newest.read();
        let state = self.hot().at(field!(Hot, directions)).of(from).at(field!(HotDirection, state)).read();
        if transport.kind == Kind::Tcp
            && let Some(tsval) = rtt::missed(known, state.tsval_state(), &transport.segment)
        {
            sync::replace(newest, known, tsval);
        }
        self.set_contended();
    }

    /// Notes that a packet was missed, for the next CPU with the lock.
    #[inline(always)]
    pub(crate) fn set_contended(self) {
        self.hot().at(field!(Hot, contended)).write(1);
    }

    /// Whether a CPU has the lock.
    #[inline(always)]
    pub(crate) fn is_busy(self) -> bool {
        self.hot().at(field!(Hot, busy)).read() != 0
    }
}

/// The series reference of what an endpoint sends.
#[inline(always)]
pub(crate) fn series(cold: Shared<Cold>, timed: Endpoint) -> Shared<SeriesRef> {
    cold.at(field!(Cold, totals)).of(timed).at(field!(Totals, series))
}

/// A flow direction to count a packet for, as other CPUs do at the same time.
pub(crate) struct DirectionCounter<A: Flows> {
    pub(crate) flow: FlowRef<A>,
    pub(crate) from: Endpoint,
    /// Whether the packet comes in or goes out.
    pub(crate) direction: Direction,
    /// The counters of the interface.
    pub(crate) counters: Shared<Counters>,
    /// [`Interface::has_two_arms`](pping_common::abi::Interface).
    pub(crate) has_two_arms: u32,
}

impl<A: Flows> DirectionCounts for DirectionCounter<A> {
    #[inline(always)]
    fn has_counted(&self) -> bool {
        self.flow.traffic(self.from).read() != 0
    }

    #[inline(always)]
    fn has_other_counted(&self) -> bool {
        self.flow.traffic(self.from.other()).read() != 0
    }

    #[inline(always)]
    fn has_two_arms(&self) -> bool {
        self.has_two_arms != 0
    }

    #[inline(always)]
    fn add_traffic(&mut self, more: u64) {
        self.flow.traffic(self.from).add(more);
    }

    #[inline(always)]
    fn set_latest(&mut self, latest: Latest) {
        self.flow.hot().at(field!(Hot, latest)).of(self.from).write(latest);
    }

    #[inline(always)]
    fn set_sequence_end(&mut self, end: u32) {
        let directions = self.flow.hot().at(field!(Hot, directions));
        directions.of(self.from).at(field!(HotDirection, sequence_end)).write(end);
    }

    #[inline(always)]
    fn add_behind(&mut self, behind: Behind) {
        let Some(cold) = self.flow.cold() else { return };
        let events = cold.at(field!(Cold, events)).of(self.from);
        match behind {
            Behind::Retransmitted => {
                events.at(field!(Events, retransmissions)).add(1);
                self.counters.at(field!(Counters, retransmissions)).element(self.direction as usize).count(1);
            }
            Behind::Reordered => {
                events.at(field!(Events, reordered)).add(1);
                self.counters.at(field!(Counters, reordered)).element(self.direction as usize).count(1);
            }
            Behind::KeepAlive => {}
        }
    }

    #[inline(always)]
    fn add_ce(&mut self) {
        if let Some(cold) = self.flow.cold() {
            let events = cold.at(field!(Cold, events)).of(self.from);
            events.at(field!(Events, ce_packets)).add(1);
        }
    }

    #[inline(always)]
    fn set_outside_end(&mut self, end: u32) {
        if let Some(cold) = self.flow.cold() {
            cold.at(field!(Cold, events)).of(self.from).at(field!(Events, outside_end)).write(end);
        }
    }

    #[inline(always)]
    fn other_outside_end(&self) -> u32 {
        self.flow.outside_end(self.from.other())
    }
}

/// The pending timestamps of a direction. Another CPU may change them meanwhile, so what follows from a stale slot is
/// checked again under the lock.
pub(crate) struct SharedPending(Shared<Pending>);

impl PendingIdentifiers for SharedPending {
    #[inline(always)]
    fn any(&self, range: PendingRange, condition: impl Fn(u32) -> bool) -> bool {
        let (times, identifiers) =
            (self.0.at(field!(Pending, times)), self.0.at(field!(Pending, identifiers)));
        rtt::any_pending(
            |slot| (times.element(slot).read(), identifiers.element(slot).read()),
            range,
            condition,
        )
    }
}

/// The rare events of an endpoint's packets.
#[inline(always)]
pub(crate) fn events(cold: Shared<Cold>, endpoint: Endpoint) -> Events {
    cold.at(field!(Cold, events)).of(endpoint).load()
}

/// The packets that an endpoint had sent at the latest [`FlowRef::flush`].
#[inline(always)]
pub(crate) fn packets(cold: Shared<Cold>, endpoint: Endpoint) -> u64 {
    let totals = cold.at(field!(Cold, totals)).of(endpoint);
    totals.at(field!(Totals, packets)).read()
}
