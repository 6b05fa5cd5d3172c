//! A flow whose lock this CPU holds.

use core::marker::PhantomData;

use pping_common::{
    abi::FlowState,
    flow::{
        self, Cold, Endpoint, Events, FlowKey, Hot, HotDirection, Latest, LockedFlow, PendingLookup,
        PendingNumber,
    },
    rtt::PendingEntry,
    series::SeriesRef,
    table::Table,
};

use crate::{
    barrier::{barrier_ptr, barrier_var},
    config,
    flow::FlowRef,
    maps::{self, Copies, Flows, SweepScratch},
    numbers,
    shared::prelude::*,
    sync,
};

impl<A: Flows> FlowRef<A> {
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
        self.set_key(key);
        let hot = self.hot();
        hot.at(field!(Hot, latest)).store(&EMPTY_HOT.latest);
        hot.at(field!(Hot, contended)).write(EMPTY_HOT.contended);
        hot.at(field!(Hot, protocol_state)).write(EMPTY_HOT.protocol_state);
        hot.at(field!(Hot, traffic)).store(&EMPTY_HOT.traffic);
        hot.at(field!(Hot, directions)).store(&EMPTY_HOT.directions);
        guard.cold.store(&EMPTY_COLD);
        if config::has_networks() {
            let Some(networks) = self.networks() else { return true };
            for endpoint in [Endpoint::Low, Endpoint::High] {
                networks.of(endpoint).write(SeriesRef::NONE);
            }
        }
        true
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
        hot.at(field!(Hot, directions)).load_to_both(&mut copies.hot.directions, &mut copies.before);
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
