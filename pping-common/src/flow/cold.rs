//! The part of a flow that only packets touch which record, match, open or close, and the sweep.

use super::{key::Endpoint, lifecycle::Reason, traffic::Sent};
use crate::{
    layout::layout,
    rtt::{Leg, LegState, RttSummary, Spin},
    series::{SeriesRef, Traffic},
};

/// The totals of an endpoint, which the sweep brings up to date, and the series of its samples.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Totals {
    /// Packets sent, when the sweep last came by.
    pub packets: u64,
    /// Bytes sent above the transport header, when the sweep last came by.
    pub bytes: u64,
    /// The series for samples of this endpoint's packets.
    pub series: SeriesRef,
}

layout!(Totals { packets, bytes, series });

impl Totals {
    /// Nothing was sent yet.
    pub const EMPTY: Self = Self { packets: 0, bytes: 0, series: SeriesRef::NONE };

    /// What was sent, when the sweep last came by.
    #[inline(always)]
    pub fn sent(&self) -> Sent {
        Sent { packets: self.packets, bytes: self.bytes }
    }
}

/// What seldom happens to packets of an endpoint. Counted without the lock, by several CPUs at a time.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Events {
    /// Segments retransmitted. A flow of UDP has no segments, and its [`SpinTimes`] in place of the first three.
    pub retransmissions: u32,
    /// Segments that arrived reordered.
    pub reordered: u32,
    /// As much of `retransmissions` as is part of a series.
    pub folded_retransmissions: u32,
    /// Packets marked for congestion (RFC 3168, 5: CE).
    pub ce_packets: u32,
    /// As much of `ce_packets` as is part of a series.
    pub folded_ce_packets: u32,
}

layout!(Events { retransmissions, reordered, folded_retransmissions, ce_packets, folded_ce_packets });

impl Events {
    /// Nothing happened yet.
    pub const EMPTY: Self = Self {
        retransmissions: 0,
        reordered: 0,
        folded_retransmissions: 0,
        ce_packets: 0,
        folded_ce_packets: 0,
    };

    /// The words that a flow of UDP has times of its spin bit in.
    #[inline(always)]
    pub fn spin(&self) -> SpinTimes {
        let edge_at = u64::from(self.reordered) << 32 | u64::from(self.retransmissions);
        SpinTimes { edge_at, interval: self.folded_retransmissions }
    }
}

/// Times of the spin bit of a direction; its flags are in the [`super::DirectionState`].
#[derive(Clone, Copy, Debug)]
pub struct SpinTimes {
    /// When the last edge was seen, ns; 0 before the first, and while that is in doubt.
    pub edge_at: u64,
    /// The measure of the interval between two edges. Of the low endpoint's direction, and while the flow is not recognised as
    /// QUIC, the version of the latest long header.
    pub interval: u32,
}

impl SpinTimes {
    /// Nothing was seen yet.
    pub const UNSEEN: Self = Self { edge_at: 0, interval: 0 };

    #[inline(always)]
    pub(super) fn with(self, flags: u8) -> Spin {
        Spin { edge_at: self.edge_at, interval: self.interval, state: flags }
    }
}

/// What changes in a direction with the lock of its flow only.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LockedDirection {
    /// When the first packet was sent, ns; 0 before. Once the flow is closed, of the direction that did not begin it: when it closed.
    pub opened_at: u64,
    /// The lowest RTT, ns; [`RttSummary::NO_RTT`] before the first. While the leg of a handshake is pending there is no RTT, and
    /// this has the leg's payload.
    min_rtt: u64,
    /// The smoothed RTT, ns. While the leg of a handshake is pending: when that began.
    smoothed_rtt: u64,
}

layout!(LockedDirection { opened_at, min_rtt, smoothed_rtt });

/// Which leg of a handshake a direction is in, and why it counts as opened, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Stages(u8);

layout!(Stages { 0 });

/// Facts about a flow, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Facts(u8);

layout!(Facts { 0 });

impl Facts {
    const HIGH_BEGAN_SHIFT: u8 = 2;
    const HIGH_BEGAN: u8 = 1 << Self::HIGH_BEGAN_SHIFT;
    const IS_CLOSED: u8 = 8;

    /// Those of a new flow whose ends are addresses of this host, or not.
    #[inline(always)]
    pub fn of_ends(is_low_local: bool, is_high_local: bool) -> Self {
        Self(u8::from(is_low_local) << Endpoint::Low as u8 | u8::from(is_high_local) << Endpoint::High as u8)
    }

    /// The endpoints that are addresses of this host: bit 0 for the low one, bit 1 for the high one.
    #[inline(always)]
    pub fn local(self) -> u8 {
        self.0 & 3
    }
}

/// The number of an entry of the pool of what is pending, or none: as memory is that was never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct PendingNumber(u32);

layout!(PendingNumber { 0 });

impl PendingNumber {
    /// No entry.
    pub const NONE: Self = Self(0);

    /// That of an entry.
    #[inline(always)]
    pub fn new(number: u32) -> Self {
        Self(number + 1)
    }

    /// The number. If there is none, one that no entry has.
    #[inline(always)]
    pub fn get(self) -> u32 {
        self.0.wrapping_sub(1)
    }

    /// Whether there is an entry.
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}

/// What changes with the lock of the flow only.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Locked {
    /// Both directions, by [`Endpoint`].
    pub directions: [LockedDirection; 2],
    /// The identifiers of the legs of the handshake, by [`Endpoint`].
    leg_numbers: [u32; 2],
    /// The flow's entry of the pool of the kernel programs.
    pub pending: PendingNumber,
    stages: [Stages; 2],
    /// The reason why the last direction closed.
    pub closed_by: Reason,
    /// The rest.
    pub facts: Facts,
}

layout!(Locked { directions, leg_numbers, pending, stages, closed_by, facts });

impl LockedDirection {
    const EMPTY: Self = Self { opened_at: 0, min_rtt: RttSummary::NO_RTT, smoothed_rtt: 0 };
}

impl Stages {
    const EMPTY: Self = Self(0);
    const LEG: u8 = 7;
    const OPENED_BY_SHIFT: u8 = 3;
}

impl Locked {
    /// A flow of which nothing is known yet.
    pub const EMPTY: Self = Self {
        directions: [LockedDirection::EMPTY; 2],
        leg_numbers: [0; 2],
        pending: PendingNumber::NONE,
        stages: [Stages::EMPTY; 2],
        closed_by: Reason::Timeout,
        facts: Facts(0),
    };

    /// The direction that an endpoint sends in.
    #[inline(always)]
    pub fn direction(&self, endpoint: Endpoint) -> &LockedDirection {
        endpoint.of(&self.directions)
    }

    #[inline(always)]
    fn direction_mut(&mut self, endpoint: Endpoint) -> &mut LockedDirection {
        endpoint.of_mut(&mut self.directions)
    }

    /// Whether what `from` sends is timed, unless it asks for no answer: the other end is not this host.
    #[inline(always)]
    pub fn is_timed(&self, from: Endpoint, include_local: bool) -> bool {
        include_local || self.facts.0 & 1 << from.other() as u8 == 0
    }

    /// Whether there may be samples of what `from` sends: it sent what asks for an answer, and that is timed.
    #[inline(always)]
    pub fn may_have_samples(&self, from: Endpoint, include_local: bool) -> bool {
        self.direction(from).opened_at != 0 && self.is_timed(from, include_local)
    }

    /// The endpoint that began the flow, as far as that was seen.
    #[inline(always)]
    fn first(&self) -> Endpoint {
        if self.facts.0 & Facts::HIGH_BEGAN == 0 { Endpoint::Low } else { Endpoint::High }
    }

    /// Which endpoint began the flow as far as that was seen, and when, ns.
    #[inline(always)]
    pub fn beginning(&self) -> (Endpoint, u64) {
        let ([low, high], first) = (&self.directions, self.first());
        (first, first.pick(low, high).opened_at)
    }

    /// When the last direction closed, ns, if none is open any more.
    #[inline(always)]
    pub fn closed_at(&self) -> Option<u64> {
        let [low, high] = &self.directions;
        (self.facts.0 & Facts::IS_CLOSED != 0).then(|| self.first().pick(high, low).opened_at)
    }

    /// The latest time at which a direction opened, ns.
    #[inline(always)]
    pub fn last_opened_at(&self) -> u64 {
        self.directions[0].opened_at.max(self.directions[1].opened_at)
    }

    /// Notes that the first packet of a direction came at `now`; `begins` says whether the other has sent nothing yet.
    #[inline(always)]
    pub(super) fn open(&mut self, from: Endpoint, now: u64, by: Reason, begins: bool) {
        self.direction_mut(from).opened_at = now;
        let stages = from.of_mut(&mut self.stages);
        stages.0 = stages.0 & Stages::LEG | (by as u8) << Stages::OPENED_BY_SHIFT;
        if begins {
            self.facts.0 = self.facts.local() | (from as u8) << Facts::HIGH_BEGAN_SHIFT;
        }
    }

    /// Notes that the last direction closed at `now`.
    #[inline(always)]
    pub(super) fn close(&mut self, now: u64, by: Reason) {
        let first = self.first();
        let [low, high] = &mut self.directions;
        first.pick(high, low).opened_at = now;
        self.closed_by = by;
        self.facts.0 |= Facts::IS_CLOSED;
    }

    /// The reason why a direction counts as opened.
    #[inline(always)]
    pub fn opened_by(&self, endpoint: Endpoint) -> Reason {
        match endpoint.of(&self.stages).0 >> Stages::OPENED_BY_SHIFT {
            0 => Reason::FirstObserved,
            1 => Reason::Syn,
            _ => Reason::SynAck,
        }
    }

    #[inline(always)]
    fn leg_state(&self, endpoint: Endpoint) -> LegState {
        LegState(endpoint.of(&self.stages).0 & Stages::LEG)
    }

    /// The leg of the handshake that a direction is in.
    #[inline(always)]
    pub(super) fn leg(&self, endpoint: Endpoint) -> Leg {
        let direction = self.direction(endpoint);
        let (state, number) = (self.leg_state(endpoint), *endpoint.of(&self.leg_numbers));
        let mut leg = Leg { number, state, ..Leg::UNSEEN };
        if leg.is_pending() {
            (leg.since, leg.payload) = (direction.smoothed_rtt, direction.min_rtt as u16);
        }
        leg
    }

    /// The same, changed.
    #[inline(always)]
    pub(super) fn set_leg(&mut self, endpoint: Endpoint, leg: Leg) {
        let was_pending = Leg { state: self.leg_state(endpoint), ..Leg::UNSEEN }.is_pending();
        let stages = endpoint.of_mut(&mut self.stages);
        stages.0 = stages.0 & !Stages::LEG | leg.state.0;
        *endpoint.of_mut(&mut self.leg_numbers) = leg.number;
        let direction = self.direction_mut(endpoint);
        if leg.is_pending() {
            (direction.smoothed_rtt, direction.min_rtt) = (leg.since, u64::from(leg.payload));
        } else if was_pending {
            (direction.smoothed_rtt, direction.min_rtt) = (0, RttSummary::NO_RTT);
        }
    }

    /// The lowest and the smoothed RTT of what an endpoint sends, ns: [`RttSummary::NO_RTT`] and 0 where there is none.
    #[inline(always)]
    pub fn rtts(&self, endpoint: Endpoint) -> (u64, u64) {
        let direction = self.direction(endpoint);
        if (Leg { state: self.leg_state(endpoint), ..Leg::UNSEEN }).is_pending() {
            (RttSummary::NO_RTT, 0)
        } else {
            (direction.min_rtt, direction.smoothed_rtt)
        }
    }

    /// The same, changed. Not while the leg of a handshake is pending.
    #[inline(always)]
    pub(in crate::flow) fn set_rtts(&mut self, endpoint: Endpoint, (min, smoothed): (u64, u64)) {
        let direction = self.direction_mut(endpoint);
        (direction.min_rtt, direction.smoothed_rtt) = (min, smoothed);
    }
}

/// The part of a flow that is in a map of its own, by the same number as its entry of the table.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Cold {
    /// The totals, by [`Endpoint`].
    pub totals: [Totals; 2],
    /// What seldom happens, by [`Endpoint`].
    pub events: [Events; 2],
    /// What changes with the lock only.
    pub locked: Locked,
}

layout!(Cold { totals, events, locked });

impl Cold {
    /// A flow of which nothing is known yet.
    pub const EMPTY: Self =
        Self { totals: [Totals::EMPTY; 2], events: [Events::EMPTY; 2], locked: Locked::EMPTY };
}

/// The traffic of an endpoint since the last sweep. `retransmissions` are as of [`Events`], and 0 of a flow without segments.
#[inline(always)]
pub fn fold(totals: &Totals, events: &Events, traffic: u64, has_segments: bool) -> Traffic {
    let since = totals.sent().since(traffic);
    let retransmissions = events.retransmissions.wrapping_sub(events.folded_retransmissions);
    Traffic {
        packets: since.packets,
        bytes: since.bytes,
        retransmissions: if has_segments { u64::from(retransmissions) } else { 0 },
        ce: u64::from(events.ce_packets.wrapping_sub(events.folded_ce_packets)),
    }
}

const _: () = {
    assert!(size_of::<Totals>() == 24);
    assert!(size_of::<Events>() == 20);
    assert!(size_of::<Locked>() == 64);
    assert!(size_of::<Cold>() == 152);
    assert!(core::mem::offset_of!(Cold, events) == 48);
    assert!(core::mem::offset_of!(Cold, locked) == 88);
};
