//! The state of a flow.

use super::{
    direction::FlowDirection,
    key::Endpoint,
    lifecycle::{Lifecycle, Reason},
    transitions,
};
use crate::{
    layout::layout,
    method::{Method, Methods},
    parse::{Datagram, Direction, Segment},
    rtt::{Connection, TimestampOption},
    series::SeriesKey,
};

/// The state of a flow. One entry serves both directions, so that a packet costs one lookup.
///
/// The kernel programs update `packets`, `bytes`, what is beside them, `contended` and `latest` on their own, and the sweep
/// `last_seen` and what begins with `folded`; everything else changes in [`Flow::step`] only, by one CPU at a time.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Flow {
    /// Whether a CPU is inside [`Flow::step`]. Belongs to the kernel programs.
    pub busy: u32,
    /// Not 0 if [`Flow::step`] missed a packet, since another CPU was inside.
    pub contended: u32,
    /// The number of the first sweep after the last packet. Counting sweeps needs no clock.
    pub last_seen: u32,
    /// Which endpoint is an address of this host: bit 0 the low one, bit 1 the high one.
    pub local: u32,
    /// The reason why the last direction closed.
    pub closed_by: Reason,
    /// Whether its segments carry timestamps.
    pub timestamps: TimestampOption,
    /// Segments without timestamps while that was not known.
    pub without_timestamps: u8,
    /// Whether it is QUIC, and how far its spin bits are trusted.
    pub connection: Connection,
    /// The version of the latest long header while it is not recognised.
    pub version: u32,
    /// The direction of the lower endpoint's packets.
    pub low: FlowDirection,
    /// When the last direction closed, ns; 0 while one is open.
    pub closed_at: u64,
    /// Has the other direction begin a cache line as well.
    pub reserved: u64,
    /// The direction of the higher endpoint's packets.
    pub high: FlowDirection,
}

layout!(Flow {
    busy,
    contended,
    last_seen,
    local,
    closed_by,
    timestamps,
    without_timestamps,
    connection,
    version,
    low,
    closed_at,
    reserved,
    high
});

impl Flow {
    /// A flow of which nothing is known yet.
    pub const EMPTY: Self = Self {
        busy: 0,
        contended: 0,
        last_seen: 0,
        local: 0,
        closed_by: Reason::Timeout,
        timestamps: TimestampOption::Unknown,
        without_timestamps: 0,
        connection: Connection::UNKNOWN,
        version: 0,
        low: FlowDirection::EMPTY,
        closed_at: 0,
        reserved: 0,
        high: FlowDirection::EMPTY,
    };

    /// [`Flow::local`] of a flow whose ends are addresses of this host, or not.
    #[inline(always)]
    pub fn local_ends(low: bool, high: bool) -> u32 {
        u32::from(low) << Endpoint::Low as u32 | u32::from(high) << Endpoint::High as u32
    }

    /// Whether a direction is open.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.low.lifecycle == Lifecycle::Open || self.high.lifecycle == Lifecycle::Open
    }

    /// The direction of an endpoint's packets.
    #[inline(always)]
    pub fn direction(&self, endpoint: Endpoint) -> &FlowDirection {
        match endpoint {
            Endpoint::Low => &self.low,
            Endpoint::High => &self.high,
        }
    }

    /// Whether `endpoint` is an address of this host.
    #[inline(always)]
    pub fn is_local(&self, endpoint: Endpoint) -> bool {
        self.local & (1 << endpoint as u32) != 0
    }

    /// Whether what `from` sends is timed, unless it asks for no answer.
    #[inline(always)]
    pub fn is_timed(&self, from: Endpoint, include_local: bool) -> bool {
        include_local || !self.is_local(from.other())
    }

    /// Whether there may be samples of what `from` sends: it sent what asks for an answer, and that is timed.
    #[inline(always)]
    pub fn may_have_samples(&self, from: Endpoint, include_local: bool) -> bool {
        self.direction(from).opened_at != 0 && self.is_timed(from, include_local)
    }

    /// The number of the [`Direction`] in which samples of `timed` are matched: the one in which the packets of the other
    /// pass, or will when there are any.
    #[inline(always)]
    pub fn matched_at(&self, timed: Endpoint) -> u8 {
        let (forward, reverse) = (self.direction(timed), self.direction(timed.other()));
        if reverse.packets > 0 {
            reverse.latest.direction
        } else if forward.latest.direction == SeriesKey::NO_DIRECTION {
            SeriesKey::NO_DIRECTION
        } else if forward.latest.direction == Direction::Ingress as u8 {
            Direction::Egress as u8
        } else {
            Direction::Ingress as u8
        }
    }

    /// The latest time at which a packet is known to have come, ns: most packets need no clock.
    #[inline(always)]
    pub fn last_known(&self) -> u64 {
        let low = self.low.opened_at.max(self.low.rtt.recorded_at);
        let high = self.high.opened_at.max(self.high.rtt.recorded_at);
        low.max(high)
    }

    /// Which endpoint began the flow as far as that was seen, and when, ns.
    #[inline(always)]
    pub fn beginning(&self) -> (Endpoint, u64) {
        let (low, high) = (self.low.opened_at, self.high.opened_at);
        if low != 0 && (high == 0 || low <= high) { (Endpoint::Low, low) } else { (Endpoint::High, high) }
    }

    /// The directions from `from`, and to it.
    #[inline(always)]
    pub fn both(&self, from: Endpoint) -> (&FlowDirection, &FlowDirection) {
        match from {
            Endpoint::Low => (&self.low, &self.high),
            Endpoint::High => (&self.high, &self.low),
        }
    }

    /// The same, mutable.
    #[inline(always)]
    pub fn both_mut(&mut self, from: Endpoint) -> (&mut FlowDirection, &mut FlowDirection) {
        match from {
            Endpoint::Low => (&mut self.low, &mut self.high),
            Endpoint::High => (&mut self.high, &mut self.low),
        }
    }

    /// The method of most samples of the flow, in whose series its traffic is counted. `number` is its IP protocol number.
    #[inline(always)]
    pub fn method(&self, number: u8, methods: Methods) -> Method {
        match number {
            Segment::NUMBER if methods.has(Method::TcpTs) && self.timestamps != TimestampOption::Absent => {
                Method::TcpTs
            }
            Segment::NUMBER if methods.has(Method::TcpSeq) => Method::TcpSeq,
            Segment::NUMBER => Method::TcpHandshake,
            Datagram::NUMBER if methods.has(Method::QuicSpin) => Method::QuicSpin,
            Datagram::NUMBER => Method::QuicHandshake,
            _ => Method::IcmpEcho,
        }
    }

    /// Whether the flow is unanswered: such flows are evicted when there are too many.
    #[inline(always)]
    pub fn is_unanswered(&self) -> bool {
        let is_begun =
            |direction: &FlowDirection| matches!(direction.lifecycle, Lifecycle::Open | Lifecycle::Closed);
        !is_begun(&self.low) && !is_begun(&self.high)
    }

    /// Whether the flow has been idle too long, `now` being the number of the present sweep.
    #[inline(always)]
    pub fn is_expired(&self, number: u8, now: u32) -> bool {
        let idle = now.wrapping_sub(self.last_seen);
        idle < u32::MAX / 2 && idle > transitions::idle_limit(&self.low, &self.high, number)
    }
}

const _: () = {
    assert!(size_of::<Flow>() == 520);
    assert!(core::mem::offset_of!(Flow, low) == 24);
    assert!(core::mem::offset_of!(Flow, high) == 280);
};
