//! What a packet with the lock has of its flow.

use super::{
    cold::{Locked, SpinTimes},
    hot::Hot,
    key::Endpoint,
};
use crate::rtt::{Leg, PendingEntry, RttSummary, Spin};

/// Where what is pending of a flow is. Most steps of most packets do not need it, so it is looked up where one does: in the kernel
/// programs it is in a map of its own.
pub trait PendingLookup {
    /// What is pending, if the flow has an entry of the pool.
    fn entry(&mut self) -> Option<&mut PendingEntry>;
}

impl PendingLookup for &mut PendingEntry {
    #[inline(always)]
    fn entry(&mut self) -> Option<&mut PendingEntry> {
        Some(self)
    }
}

/// What a packet with the lock has of its flow. In the kernel programs `hot` and `spin` are copies, which other CPUs look at in
/// their map meanwhile: what changed is written back before the lock is given back.
pub struct LockedFlow<'a, P> {
    /// What most packets look at.
    pub hot: &'a mut Hot,
    /// The times of the spin bit, by [`Endpoint`]; of a flow of UDP only.
    pub spin: &'a mut [SpinTimes; 2],
    /// What changes with the lock only.
    pub locked: &'a mut Locked,
    /// What is pending.
    pub pending: P,
}

impl<P: PendingLookup> LockedFlow<'_, P> {
    /// Whether what `from` sends is timed, unless it asks for no answer.
    #[inline(always)]
    pub(super) fn is_timed(&self, from: Endpoint, include_local: bool) -> bool {
        self.locked.is_timed(from, include_local)
    }

    /// The leg of the handshake that a direction is in.
    #[inline(always)]
    pub(super) fn leg(&self, endpoint: Endpoint) -> Leg {
        self.locked.leg(endpoint)
    }

    /// The same, changed.
    #[inline(always)]
    pub(super) fn set_leg(&mut self, endpoint: Endpoint, leg: Leg) {
        self.locked.set_leg(endpoint, leg);
        self.hot.direction_mut(endpoint).state.set_leg_pending(leg.is_pending());
    }

    /// Gives up the leg that a direction is in: its reply may have been missed, or will never come.
    #[inline(always)]
    pub(super) fn give_up_leg(&mut self, endpoint: Endpoint) {
        let mut leg = self.leg(endpoint);
        leg.give_up();
        self.set_leg(endpoint, leg);
    }

    /// Frees all that is pending of a direction.
    #[inline(always)]
    pub(super) fn clear_pending(&mut self, endpoint: Endpoint) {
        if let Some(entry) = self.pending.entry() {
            endpoint.of_mut(&mut entry.directions).clear();
        }
        self.hot.direction_mut(endpoint).state.set_waiting(false);
    }

    /// Notes when an endpoint recorded what is echoed.
    #[inline(always)]
    pub(super) fn set_recorded_at(&mut self, endpoint: Endpoint, now: u64) {
        if let Some(entry) = self.pending.entry() {
            *endpoint.of_mut(&mut entry.recorded_at) = now;
        }
        self.hot.direction_mut(endpoint).state.set_recorded_at(now);
    }

    /// The RTTs of what an endpoint of a flow of QUIC sends, and when an edge was last recorded.
    #[inline(always)]
    pub(super) fn quic_rtt(&self, endpoint: Endpoint) -> RttSummary {
        let (min, smoothed) = self.locked.rtts(endpoint);
        RttSummary { recorded_at: quic_recorded_at(self.hot, endpoint), min, smoothed }
    }

    /// Notes when an edge was recorded, of a flow of QUIC.
    #[inline(always)]
    pub(super) fn set_quic_recorded_at(&mut self, endpoint: Endpoint, now: u64) {
        let direction = self.hot.direction_mut(endpoint);
        (direction.newest_tsval, direction.sequence_end) = (now as u32, (now >> 32) as u32);
    }

    /// The spin bit of a direction.
    #[inline(always)]
    pub(super) fn spin(&self, endpoint: Endpoint) -> Spin {
        endpoint.of(self.spin).with(self.hot.state(endpoint).spin())
    }

    /// The same, changed.
    #[inline(always)]
    pub(super) fn set_spin(&mut self, endpoint: Endpoint, spin: Spin) {
        *endpoint.of_mut(self.spin) = SpinTimes { edge_at: spin.edge_at, interval: spin.interval };
        self.hot.direction_mut(endpoint).state.set_spin(spin.state);
    }
}

/// When an edge of a flow of QUIC was last recorded.
#[inline(always)]
pub(super) fn quic_recorded_at(hot: &Hot, endpoint: Endpoint) -> u64 {
    let direction = hot.direction(endpoint);
    u64::from(direction.sequence_end) << 32 | u64::from(direction.newest_tsval)
}
