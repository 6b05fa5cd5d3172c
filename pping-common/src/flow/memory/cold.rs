//! The part of a flow that most packets do not touch. The sweep does, and packets that record, match, open or close, that
//! are retransmitted, reordered, or marked for congestion.

use crate::{
    flow::{
        key::Endpoint,
        memory::{lifecycle::Reason, traffic::Sent},
    },
    layout::layout,
    rtt::{Leg, LegState, RttSummary, Spin},
    series::{SeriesRef, Traffic},
};

/// The totals of an endpoint, which the sweep updates, and the series of its samples.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Totals {
    /// Packets sent, as of the last sweep of the flow.
    pub packets: u64,
    /// Bytes sent above the transport header, as of the last sweep of the flow.
    pub bytes: u64,
    /// The series for samples of this endpoint's packets.
    pub series: SeriesRef,
}

layout!(Totals { packets, bytes, series });

impl Totals {
    /// Nothing was sent yet.
    pub const EMPTY: Self = Self { packets: 0, bytes: 0, series: SeriesRef::NONE };

    /// What was sent, as of the last sweep of the flow.
    #[inline(always)]
    pub fn sent(&self) -> Sent {
        Sent { packets: self.packets, bytes: self.bytes }
    }
}

/// Rare events of an endpoint's packets. Several CPUs count them at a time, without the lock.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Events {
    /// Segments retransmitted. A UDP flow has no segments: its [`SpinTimes`] take the place of the first three fields.
    pub retransmissions: u32,
    /// Segments that arrived reordered.
    pub reordered: u32,
    /// The part of `retransmissions` that has been added to a series.
    pub flushed_retransmissions: u32,
    /// Packets marked for congestion (RFC 3168, 5: CE).
    pub ce_packets: u32,
    /// The part of `ce_packets` that has been added to a series.
    pub flushed_ce_packets: u32,
    /// Where the latest segment ended that lies outside the window: see `flow::packet::window`.
    pub outside_end: u32,
}

layout!(Events {
    retransmissions,
    reordered,
    flushed_retransmissions,
    ce_packets,
    flushed_ce_packets,
    outside_end
});

impl Events {
    /// Nothing happened yet.
    pub const EMPTY: Self = Self {
        retransmissions: 0,
        reordered: 0,
        flushed_retransmissions: 0,
        ce_packets: 0,
        flushed_ce_packets: 0,
        outside_end: 0,
    };

    /// The times of the spin bit, which a UDP flow has in these words.
    #[inline(always)]
    pub fn spin(&self) -> SpinTimes {
        let edge_at = u64::from(self.reordered) << 32 | u64::from(self.retransmissions);
        SpinTimes { edge_at, interval: self.flushed_retransmissions }
    }
}

/// Times of the spin bit of a flow direction. Its flags are in the [`crate::flow::DirectionState`].
#[derive(Clone, Copy, Debug)]
pub struct SpinTimes {
    /// When the last edge was seen, ns; 0 before the first, and while the time is not known.
    pub edge_at: u64,
    /// The measure of the interval between two edges. Until the flow is recognised as QUIC, the low endpoint's has the
    /// version of the latest long header.
    pub interval: u32,
}

impl SpinTimes {
    /// Nothing was seen yet.
    pub const UNSEEN: Self = Self { edge_at: 0, interval: 0 };

    #[inline(always)]
    pub(in crate::flow) fn with(self, flags: u8) -> Spin {
        Spin { edge_at: self.edge_at, interval: self.interval, state: flags }
    }
}

/// The part of a flow direction that changes only under the lock of its flow.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LockedDirection {
    /// When the first packet was sent, ns; 0 before. Once the flow is closed, the direction that did not begin it has the
    /// time of closing.
    pub opened_at: u64,
    /// The lowest RTT, ns; [`RttSummary::NO_RTT`] before the first. While a leg of the handshake is pending, the leg's
    /// payload: RTTs come after the leg.
    min_rtt: u64,
    /// The smoothed RTT, ns. While a leg of the handshake is pending, the time when it began.
    smoothed_rtt: u64,
}

layout!(LockedDirection { opened_at, min_rtt, smoothed_rtt });

/// The state of a direction's leg of the handshake and the reason why it opened, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(in crate::flow) struct Stages(u8);

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

    /// Creates the facts of a new flow. The arguments say which ends are addresses of this host.
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

/// The number of a flow's entry in the pool of pending timestamps. 0 means none, so zeroed memory has no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct PendingNumber(u32);

layout!(PendingNumber { 0 });

impl PendingNumber {
    /// No entry.
    pub const NONE: Self = Self(0);

    /// Creates the number of an entry.
    #[inline(always)]
    pub fn new(number: u32) -> Self {
        Self(number + 1)
    }

    /// Returns the number. If there is none, returns one that no entry has.
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

/// The part of a flow that changes only under its lock.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Locked {
    /// Both directions, by [`Endpoint`].
    pub directions: [LockedDirection; 2],
    /// The identifiers of the legs of the handshake, by [`Endpoint`].
    leg_identifiers: [u32; 2],
    /// The flow's entry in the kernel programs' pool of pending timestamps.
    pub pending: PendingNumber,
    stages: [Stages; 2],
    /// The reason why the last direction closed.
    pub closed_by: Reason,
    /// Other facts of the flow.
    pub facts: Facts,
}

layout!(Locked { directions, leg_identifiers, pending, stages, closed_by, facts });

impl LockedDirection {
    const EMPTY: Self = Self { opened_at: 0, min_rtt: RttSummary::NO_RTT, smoothed_rtt: 0 };
}

impl Stages {
    const EMPTY: Self = Self(0);
    const LEG: u8 = 7;
    const OPENED_BY_SHIFT: u8 = 3;
}

impl Locked {
    /// A flow that has had no packet.
    pub const EMPTY: Self = Self {
        directions: [LockedDirection::EMPTY; 2],
        leg_identifiers: [0; 2],
        pending: PendingNumber::NONE,
        stages: [Stages::EMPTY; 2],
        closed_by: Reason::Timeout,
        facts: Facts(0),
    };

    /// The direction in which an endpoint sends.
    #[inline(always)]
    pub fn direction(&self, endpoint: Endpoint) -> &LockedDirection {
        endpoint.of(&self.directions)
    }

    #[inline(always)]
    fn direction_mut(&mut self, endpoint: Endpoint) -> &mut LockedDirection {
        endpoint.of_mut(&mut self.directions)
    }

    /// Whether what `from` sends is timed, if it asks for an answer: the other end must not be this host, unless
    /// `include_local`.
    #[inline(always)]
    pub fn is_timed(&self, from: Endpoint, include_local: bool) -> bool {
        include_local || self.facts.0 & 1 << from.other() as u8 == 0
    }

    /// Whether what `from` sends may have samples: it sent something that asks for an answer, and that is timed.
    #[inline(always)]
    pub fn may_have_samples(&self, from: Endpoint, include_local: bool) -> bool {
        self.direction(from).opened_at != 0 && self.is_timed(from, include_local)
    }

    /// The endpoint that began the flow, as far as pping saw.
    #[inline(always)]
    fn first(&self) -> Endpoint {
        if self.facts.0 & Facts::HIGH_BEGAN == 0 { Endpoint::Low } else { Endpoint::High }
    }

    /// The endpoint that began the flow, as far as pping saw, and when, ns.
    #[inline(always)]
    pub fn beginning(&self) -> (Endpoint, u64) {
        let ([low, high], first) = (&self.directions, self.first());
        (first, first.pick(low, high).opened_at)
    }

    /// When the last direction closed, ns; `None` if a direction is open or none ever was.
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

    /// Notes that the first packet of a direction came at `now`. `begins` says that the other direction has sent nothing
    /// yet.
    #[inline(always)]
    pub(in crate::flow) fn open(&mut self, from: Endpoint, now: u64, by: Reason, begins: bool) {
        self.direction_mut(from).opened_at = now;
        let stages = from.of_mut(&mut self.stages);
        stages.0 = stages.0 & Stages::LEG | (by as u8) << Stages::OPENED_BY_SHIFT;
        if begins {
            self.facts.0 = self.facts.local() | (from as u8) << Facts::HIGH_BEGAN_SHIFT;
        }
    }

    /// Notes that the last direction closed at `now`.
    #[inline(always)]
    pub(in crate::flow) fn close(&mut self, now: u64, by: Reason) {
        let first = self.first();
        let [low, high] = &mut self.directions;
        first.pick(high, low).opened_at = now;
        self.closed_by = by;
        self.facts.0 |= Facts::IS_CLOSED;
    }

    /// The reason why a direction opened.
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

    /// The leg of the handshake that a direction began.
    #[inline(always)]
    pub(in crate::flow) fn leg(&self, endpoint: Endpoint) -> Leg {
        let direction = self.direction(endpoint);
        let (state, identifier) = (self.leg_state(endpoint), *endpoint.of(&self.leg_identifiers));
        let mut leg = Leg { identifier, state, ..Leg::UNSEEN };
        if leg.is_pending() {
            (leg.since, leg.payload) = (direction.smoothed_rtt, direction.min_rtt as u16);
        }
        leg
    }

    /// Replaces the leg of a direction.
    #[inline(always)]
    pub(in crate::flow) fn set_leg(&mut self, endpoint: Endpoint, leg: Leg) {
        let was_pending = Leg { state: self.leg_state(endpoint), ..Leg::UNSEEN }.is_pending();
        let stages = endpoint.of_mut(&mut self.stages);
        stages.0 = stages.0 & !Stages::LEG | leg.state.0;
        *endpoint.of_mut(&mut self.leg_identifiers) = leg.identifier;
        let direction = self.direction_mut(endpoint);
        if leg.is_pending() {
            (direction.smoothed_rtt, direction.min_rtt) = (leg.since, u64::from(leg.payload));
        } else if was_pending {
            (direction.smoothed_rtt, direction.min_rtt) = (0, RttSummary::NO_RTT);
        }
    }

    /// The lowest and the smoothed RTT of what an endpoint sends, ns; [`RttSummary::NO_RTT`] and 0 before the first
    /// sample.
    #[inline(always)]
    pub fn rtts(&self, endpoint: Endpoint) -> (u64, u64) {
        let direction = self.direction(endpoint);
        if (Leg { state: self.leg_state(endpoint), ..Leg::UNSEEN }).is_pending() {
            (RttSummary::NO_RTT, 0)
        } else {
            (direction.min_rtt, direction.smoothed_rtt)
        }
    }

    /// Replaces the RTTs. Must not be called while a leg of the handshake is pending.
    #[inline(always)]
    pub(in crate::flow) fn set_rtts(&mut self, endpoint: Endpoint, (min, smoothed): (u64, u64)) {
        let direction = self.direction_mut(endpoint);
        (direction.min_rtt, direction.smoothed_rtt) = (min, smoothed);
    }
}

/// The part of a flow that is in a separate map, under the number of its entry in the table.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Cold {
    /// The totals, by [`Endpoint`].
    pub totals: [Totals; 2],
    /// The rare events, by [`Endpoint`].
    pub events: [Events; 2],
    /// The part that changes only under the lock.
    pub locked: Locked,
}

layout!(Cold { totals, events, locked });

impl Cold {
    /// A flow that has had no packet.
    pub const EMPTY: Self =
        Self { totals: [Totals::EMPTY; 2], events: [Events::EMPTY; 2], locked: Locked::EMPTY };
}

/// Returns the traffic of an endpoint since the last sweep. `retransmissions` come from [`Events`], and are 0 in a flow
/// without segments.
#[inline(always)]
pub fn flush(totals: &Totals, events: &Events, traffic: u64, has_segments: bool) -> Traffic {
    let since = totals.sent().since(traffic);
    let retransmissions = events.retransmissions.wrapping_sub(events.flushed_retransmissions);
    Traffic {
        packets: since.packets,
        bytes: since.bytes,
        retransmissions: if has_segments { u64::from(retransmissions) } else { 0 },
        ce: u64::from(events.ce_packets.wrapping_sub(events.flushed_ce_packets)),
    }
}

const _: () = {
    assert!(size_of::<Totals>() == 24);
    assert!(size_of::<Events>() == 24);
    assert!(size_of::<Locked>() == 64);
    assert!(size_of::<Cold>() == 160);
    assert!(core::mem::offset_of!(Cold, events) == 48);
    assert!(core::mem::offset_of!(Cold, locked) == 96);
};
