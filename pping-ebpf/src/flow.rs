//! A flow in its maps: what many CPUs share, and what one CPU has while it holds the lock.

use core::marker::PhantomData;

use pping_common::{
    abi::{Counters, FlowState},
    flow::{
        self, Behind, Cold, DirectionCounts, Endpoint, Events, FlowKey, FlowSnapshot, Hot, HotDirection,
        HotEntry, Latest, LockedFlow, PendingLookup, PendingNumber, Sent, Totals, is_expired,
    },
    parse::{Direction, Kind, Transport},
    rtt::{self, Pending, PendingEntry, PendingIdentifiers, PendingRange},
    series::{SeriesRef, Traffic},
    table::Table,
};

use crate::{
    barrier::{barrier_ptr, barrier_var},
    config,
    maps::{self, Copies, Flows, SweepScratch},
    numbers,
    shared::prelude::*,
    sync,
};

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

    /// Notes a sweep of a flow, which is of TCP if it `has_segments`. `have_counted` says of which endpoints packets counted since
    /// the one before.
    #[inline(always)]
    pub(crate) fn sweep_hooks(self, has_segments: bool, have_counted: [bool; 2]) {
        let latest = self.hot().at(field!(Hot, latest));
        let before = [latest.of(Endpoint::Low).read(), latest.of(Endpoint::High).read()];
        let have_sent = [Endpoint::Low, Endpoint::High].map(|endpoint| self.traffic(endpoint).read() != 0);
        let (after, moves) = Latest::sweep(before, have_counted, have_sent);
        if moves && !self.leave_hook(has_segments) {
            return;
        }
        for endpoint in [Endpoint::Low, Endpoint::High] {
            if endpoint.of(&after) != endpoint.of(&before) {
                latest.of(endpoint).write(*endpoint.of(&after));
            }
        }
    }

    /// Notes that an endpoint leaves its hook. If another CPU has the lock, returns `false`: the next sweep tries again.
    #[inline(always)]
    fn leave_hook(self, has_segments: bool) -> bool {
        let Some(_guard) = self.lock_briefly() else { return false };
        // Packets that would have counted were left out before, and those that counted may be forged.
        self.set_contended();
        if !has_segments {
            return true;
        }
        for endpoint in [Endpoint::Low, Endpoint::High] {
            let state = self.hot().at(field!(Hot, directions)).of(endpoint).at(field!(HotDirection, state));
            let mut anew = state.read();
            anew.forget_numbers();
            state.write(anew);
        }
        true
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

    /// Takes the lock; `None` when another CPU has it and keeps it. The guard must not be made without the lock,
    /// because dropping it unlocks.
    #[inline(always)]
    pub(crate) fn lock(self) -> Option<FlowGuard<A>> {
        let cold = self.cold()?;
        sync::lock(self.hot().at(field!(Hot, busy))).then(|| FlowGuard { flow: self, cold })
    }

    /// The same, but gives up sooner.
    #[inline(always)]
    pub(crate) fn lock_briefly(self) -> Option<FlowGuard<A>> {
        let cold = self.cold()?;
        sync::lock_briefly(self.hot().at(field!(Hot, busy))).then(|| FlowGuard { flow: self, cold })
    }

    /// Turns a removed flow into a new one; `false` if another CPU still has the lock of the removed one.
    #[inline(always)]
    pub(crate) fn reset(self, key: &FlowKey<A>) -> bool {
        /// Stored field by field, without `busy`: that is the lock, which is held.
        static EMPTY_HOT: Hot = Hot::EMPTY;
        static EMPTY_COLD: Cold = Cold::EMPTY;
        let Some(mut guard) = self.lock_briefly() else { return false };
        guard.release_pending();
        self.entry.at(field!(HotEntry<A>, key)).store(key);
        let hot = self.hot();
        hot.at(field!(Hot, latest)).store(&EMPTY_HOT.latest);
        hot.at(field!(Hot, contended)).write(EMPTY_HOT.contended);
        hot.at(field!(Hot, protocol_state)).write(EMPTY_HOT.protocol_state);
        hot.at(field!(Hot, traffic)).store(&EMPTY_HOT.traffic);
        hot.at(field!(Hot, directions)).store(&EMPTY_HOT.directions);
        guard.cold.store(&EMPTY_COLD);
        true
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

/// The entry of the pool that a locked flow has, or none.
pub(crate) struct PoolEntry<A> {
    number: PendingNumber,
    family: PhantomData<A>,
}

impl<A: Flows> PendingLookup for PoolEntry<A> {
    #[inline(always)]
    fn entry(&mut self) -> Option<&mut PendingEntry> {
        let entry = A::pending(self.number.get())?;
        // SAFETY: a map value, valid for the program's run. It belongs to one flow at a time, whose lock is held.
        Some(unsafe { &mut *entry.as_ptr() })
    }
}

/// A flow whose lock this CPU holds until this is dropped.
pub(crate) struct FlowGuard<A: Flows> {
    flow: FlowRef<A>,
    cold: Shared<Cold>,
}

impl<A: Flows> Drop for FlowGuard<A> {
    #[inline(always)]
    fn drop(&mut self) {
        sync::unlock(self.flow.hot().at(field!(Hot, busy)));
    }
}

impl<A: Flows> FlowGuard<A> {
    /// Copies what other CPUs look at while the flow is locked.
    #[inline(always)]
    pub(crate) fn copy_to(&self, copies: &mut Copies, is_udp: bool) {
        let hot = self.flow.hot();
        // Cleared at once, so that the next CPU with the lock learns of packets that are missed from now on.
        copies.hot.contended = hot.at(field!(Hot, contended)).read();
        if copies.hot.contended != 0 {
            hot.at(field!(Hot, contended)).write(0);
        }
        copies.hot.protocol_state = hot.at(field!(Hot, protocol_state)).read();
        hot.at(field!(Hot, directions)).load_to(&mut copies.hot.directions);
        copies.before = copies.hot.directions;
        if is_udp {
            let events = self.cold.at(field!(Cold, events));
            copies.spin = [events.element(0).load().spin(), events.element(1).load().spin()];
        }
    }

    /// Notes that packets of an endpoint pass the other hook, too.
    #[inline(always)]
    pub(crate) fn note_forwarded(&self, from: Endpoint) {
        let directions = self.flow.hot().at(field!(Hot, directions));
        let state = directions.of(from).at(field!(HotDirection, state));
        let mut changed = state.read();
        changed.set_forwarded();
        state.write(changed);
    }

    /// Writes back what changed.
    #[inline(always)]
    pub(crate) fn copy_from(&self, copies: &Copies, is_udp: bool) {
        let hot = self.flow.hot();
        hot.at(field!(Hot, protocol_state)).write(copies.hot.protocol_state);
        for (direction, (new, old)) in
            hot.at(field!(Hot, directions)).iter().zip(copies.hot.directions.iter().zip(&copies.before))
        {
            // Other CPUs advance these too, so what did not change here is left alone. A CPU that advances the newest
            // TSval meanwhile sets `contended`, so that the next CPU with the lock invalidates what this one recorded.
            if new.newest_tsval != old.newest_tsval {
                let newest = direction.at(field!(HotDirection, newest_tsval));
                sync::replace(newest, old.newest_tsval, new.newest_tsval);
            }
            if new.sequence_end != old.sequence_end {
                direction.at(field!(HotDirection, sequence_end)).write(new.sequence_end);
            }
            direction.at(field!(HotDirection, state)).write(new.state);
        }
        if is_udp {
            for (events, spin) in self.cold.at(field!(Cold, events)).iter().zip(&copies.spin) {
                events.at(field!(Events, retransmissions)).write(spin.edge_at as u32);
                events.at(field!(Events, reordered)).write((spin.edge_at >> 32) as u32);
                events.at(field!(Events, flushed_retransmissions)).write(spin.interval);
            }
        }
    }

    /// The flow as a packet with the lock sees it.
    #[inline(always)]
    pub(crate) fn view<'a>(&'a mut self, copies: &'a mut Copies) -> LockedFlow<'a, PoolEntry<A>> {
        let locked = barrier_ptr(self.cold.at(field!(Cold, locked)).as_ptr()).cast_mut();
        // SAFETY: a map value, valid for the program's run. It changes only under the lock, which is held as long as
        // this is borrowed. Others only read words of it.
        let locked = unsafe { &mut *locked };
        let pending = PoolEntry { number: locked.pending, family: PhantomData };
        LockedFlow { hot: &mut copies.hot, spin: &mut copies.spin, locked, pending }
    }

    /// The state of the flow for the event of a sample that times what `timed` sent.
    #[inline(always)]
    pub(crate) fn state(&self, timed: Endpoint) -> FlowState {
        let locked = barrier_ptr(self.cold.at(field!(Cold, locked)).as_ptr());
        // SAFETY: as in `view`.
        let rtts = unsafe { &*locked }.rtts(timed);
        FlowState::of(rtts, self.flow.sent(self.cold, timed), self.flow.sent(self.cold, timed.other()))
    }

    /// Makes sure that the flow has an entry of the pool; `false` if none is left.
    #[inline(always)]
    pub(crate) fn ensure_pending(&mut self) -> bool {
        static EMPTY: PendingEntry = PendingEntry::EMPTY;
        let pending = self.cold.at(field!(Cold, locked.pending));
        if pending.read().is_some() {
            return true;
        }
        let Some(table) = maps::table(A::FAMILY) else { return false };
        let Some(number) = numbers::take(A::free_pending(), table.at(field!(Table, pending))) else {
            return false;
        };
        let Some(entry) = A::pending(number) else { return false };
        entry.store(&EMPTY);
        pending.write(PendingNumber::new(number));
        true
    }

    /// Gives back the flow's entry of the pool, if the flow can do without it at `now`, ns.
    #[inline(always)]
    pub(crate) fn reclaim_pending(&mut self, now: u64, scratch: &mut SweepScratch) {
        self.flow.hot().load_to(&mut scratch.hot);
        self.cold.at(field!(Cold, locked)).load_to(&mut scratch.locked);
        barrier_var(scratch);
        let recorded_at = FlowRef::<A>::recorded_at(scratch.locked.pending);
        if flow::is_pending_idle(&scratch.hot, &scratch.locked, recorded_at, config::rules(), now) {
            self.release_pending();
        }
    }

    /// Gives back the flow's entry of the pool, if it has one.
    #[inline(always)]
    pub(crate) fn release_pending(&mut self) {
        let pending = self.cold.at(field!(Cold, locked.pending));
        let number = pending.read();
        if number.is_some() {
            pending.write(PendingNumber::NONE);
            numbers::give(A::free_pending(), number.get());
        }
    }
}
