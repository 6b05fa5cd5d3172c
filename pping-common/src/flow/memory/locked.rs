//! A flow, as the packet that holds its lock uses it.

use crate::{
    flow::{
        key::Endpoint,
        memory::{
            cold::{Locked, SpinTimes},
            hot::Hot,
        },
    },
    rtt::{Leg, PendingEntry, RttSummary, Spin},
};

/// Finds the pending timestamps of a flow. Most steps of most packets do not need them, and in the kernel programs they
/// are in a separate map. So they are looked up only when a step needs them.
pub trait PendingLookup {
    /// Returns the pending timestamps, if the flow has an entry of the pool.
    fn entry(&mut self) -> Option<&mut PendingEntry>;
}

impl PendingLookup for &mut PendingEntry {
    #[inline(always)]
    fn entry(&mut self) -> Option<&mut PendingEntry> {
        Some(self)
    }
}

/// A flow, as the packet that holds its lock uses it. In the kernel programs `hot` and `spin` are copies, because other
/// CPUs read the originals in the map meanwhile. Changes are written back before the lock is released.
pub struct LockedFlow<'a, P> {
    /// The part that most packets read.
    pub hot: &'a mut Hot,
    /// The times of the spin bit, by [`Endpoint`]; in UDP flows only.
    pub spin: &'a mut [SpinTimes; 2],
    /// The part that changes only under the lock.
    pub locked: &'a mut Locked,
    /// The pending timestamps.
    pub pending: P,
}

impl<P: PendingLookup> LockedFlow<'_, P> {
    /// Whether what `from` sends is timed, if it asks for an answer.
    #[inline(always)]
    pub(in crate::flow) fn is_timed(&self, from: Endpoint, include_local: bool) -> bool {
        self.locked.is_timed(from, include_local)
    }

    /// The leg of the handshake that a direction began.
    #[inline(always)]
    pub(in crate::flow) fn leg(&self, endpoint: Endpoint) -> Leg {
        self.locked.leg(endpoint)
    }

    /// Replaces the leg of a direction.
    #[inline(always)]
    pub(in crate::flow) fn set_leg(&mut self, endpoint: Endpoint, leg: Leg) {
        self.locked.set_leg(endpoint, leg);
        self.hot.direction_mut(endpoint).state.set_leg_pending(leg.is_pending());
    }

    /// Gives up the leg of a direction: its reply may have been missed, or will never come.
    #[inline(always)]
    pub(in crate::flow) fn give_up_leg(&mut self, endpoint: Endpoint) {
        let mut leg = self.leg(endpoint);
        leg.give_up();
        self.set_leg(endpoint, leg);
    }

    /// Frees the pending timestamps of a direction.
    #[inline(always)]
    pub(in crate::flow) fn clear_pending(&mut self, endpoint: Endpoint) {
        if let Some(entry) = self.pending.entry() {
            endpoint.of_mut(&mut entry.directions).clear();
        }
        self.hot.direction_mut(endpoint).state.set_has_pending(false);
    }

    /// Notes when an endpoint last recorded.
    #[inline(always)]
    pub(in crate::flow) fn set_recorded_at(&mut self, endpoint: Endpoint, now: u64) {
        if let Some(entry) = self.pending.entry() {
            *endpoint.of_mut(&mut entry.recorded_at) = now;
        }
        self.hot.direction_mut(endpoint).state.set_recorded_at(now);
    }

    /// The RTTs of what an endpoint of a QUIC flow sends, and when it last recorded an edge.
    #[inline(always)]
    pub(in crate::flow) fn quic_rtt(&self, endpoint: Endpoint) -> RttSummary {
        let (min, smoothed) = self.locked.rtts(endpoint);
        RttSummary { recorded_at: quic_recorded_at(self.hot, endpoint), min, smoothed }
    }

    /// Notes when an edge of a QUIC flow was recorded.
    #[inline(always)]
    pub(in crate::flow) fn set_quic_recorded_at(&mut self, endpoint: Endpoint, now: u64) {
        let direction = self.hot.direction_mut(endpoint);
        (direction.newest_tsval, direction.sequence_end) = (now as u32, (now >> 32) as u32);
    }

    /// The spin bit of a direction.
    #[inline(always)]
    pub(in crate::flow) fn spin(&self, endpoint: Endpoint) -> Spin {
        endpoint.of(self.spin).with(self.hot.state(endpoint).spin())
    }

    /// Replaces the spin bit of a direction.
    #[inline(always)]
    pub(in crate::flow) fn set_spin(&mut self, endpoint: Endpoint, spin: Spin) {
        *endpoint.of_mut(self.spin) = SpinTimes { edge_at: spin.edge_at, interval: spin.interval };
        self.hot.direction_mut(endpoint).state.set_spin(spin.state);
    }
}

/// When an edge of a QUIC flow was last recorded.
#[inline(always)]
pub(in crate::flow) fn quic_recorded_at(hot: &Hot, endpoint: Endpoint) -> u64 {
    let direction = hot.direction(endpoint);
    u64::from(direction.sequence_end) << 32 | u64::from(direction.newest_tsval)
}
