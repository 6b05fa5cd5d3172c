//! `quic-spin` and `quic-handshake`.
//!
//! Recognition
//!
//! 1. A flow begins with a long header other than version negotiation. It is recognised as QUIC with the first long header
//!    of a version that is known or greased, or that has the version of the long header before it in the flow, and a
//!    destination ID that is not empty and is the source ID of the other side. IDs are compared by their digest.
//! 2. The source ID of a side is that of its latest long header; while its first one waits for a reply, that of the first.
//!    Version negotiation counts for nothing but as a reply.
//!
//! `quic-handshake`
//!
//! 3. The packet that begins the flow waits for a reply if it is an Initial, and what its side sends is timed. In versions
//!    that are not known, each long header counts as an Initial.
//! 4. The reply is the first long header of the other side, of whatever type, whose destination ID is the source ID of the
//!    packet that waits. It gives a sample; the identifier is the version of the reply.
//! 5. An Initial that the waiting side sends more than [`FLIGHT`] later is a retransmission, so that the reply would be
//!    ambiguous, and nothing waits any more (Karn). Until then it is of the same flight, and changes nothing.
//!
//! `quic-spin`
//!
//! Where the spin bit is in use (RFC 9000, 17.4), edges come in turn: the server reflects the client's, and the client
//! inverts what it sees then. So each direction of a recognised flow has a value, the time of its last edge and a measure of
//! the interval between two, and the flow has a turn, and trust. Only short headers count.
//!
//! 6. The first packet of a direction sets its value. One with another value is an edge if rules 7 and 8 let it: then it
//!    sets the value and the time of the last edge, and the turn is the other side's. Before the first edge the turn is
//!    anyone's.
//! 7. If the last edge of the direction was less than 1 / [`EARLY_SHARE`] of its measure ago, the packet is early: others
//!    overtook it. It is left aside; the first early one of a direction since the latest edge of the flow costs 1 of
//!    trust. If the other direction had an early one since that edge too, the RTT fell, and both start over.
//! 8. Else, if it is not the turn of its side, it is left aside as well: it is later than that, or an edge went by unseen,
//!    or was none. If the flow is believed, the times of the last edges of both directions are forgotten, which
//!    costs [`BREACH`] of trust if there was any. If not, that is the cost in any case, and both directions start over.
//! 9. An edge gains 1 of trust, unless the turn was anyone's.
//! 10. Trust is [`FIRST`] when the flow is recognised, and never leaves [`LEAST`] to [`MOST`]. From [`BELIEVED`] on the flow
//!     is believed: with the 7th edge if nothing is wrong, and else up to the 16th in a row. Of sides that grease the bit,
//!     one of them or both, few get so far, and not for long.
//! 11. An edge ends an interval if the last edge of its direction has a time. That is a sample if the flow is believed by now,
//!     the interval is at least half the measure that there was before, and at most [`LONGEST`], since neither end sent anything
//!     for a while then. The identifier is the value. The part beyond the sender of the edge is the time since the last edge
//!     of the other direction.
//! 12. The measure is the last interval in units of 1024 ns, rounded down. But if there was one, it goes no further than to
//!     its double or its half (rounded down): neither a pause nor a packet that came late says what is early from then on.
//! 13. As with an echo, what is timed is what the other side sends, so samples are taken only if that is timed; and
//!     only if an edge may record by the limits on what the other side sends. The edge that begins the interval records.
//! 14. A direction that starts over has no value, no last edge and no measure, and the turn is anyone's. The same, but
//!     for the measure, happens to both if packets went by unseen, and with a long header that changes the source ID of its
//!     side: it may begin another connection.
//!
//! So a sample is too long by as much as the hosts waited until they had something to send, and as it took until a packet
//! came after one that was lost. It is too short only if packets are overtaken by more than a quarter of the RTT: one sample in
//! thousands, and one in fifty if it is a whole RTT.

use super::plan::MatchPlan;
use crate::{limits::PENDING_LIFETIME, method::Method};

/// Nanoseconds in which a client sends the packets of its first flight. A retransmission takes longer: 150 ms at the least.
pub(crate) const FLIGHT: u64 = 50_000_000;
/// The longest interval between two edges that is a sample, ns.
const LONGEST: u64 = PENDING_LIFETIME;
/// One part in so many of an interval is too early for an edge.
const EARLY_SHARE: u64 = 8;

/// The least trust that a recognised flow has.
const LEAST: u8 = 1;
/// The trust of a new flow.
const FIRST: u8 = 10;
/// The trust from which samples count.
const BELIEVED: u8 = 16;
/// The highest trust.
const MOST: u8 = 24;
/// The trust that an edge out of turn costs.
const BREACH: u8 = 4;

/// The state of the spin bit of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    /// When the last edge was seen, ns; 0 before the first, and while that is in doubt.
    pub(crate) edge_at: u64,
    /// The measure of the interval between two edges, in units of 1024 ns; 0 before there were two.
    pub(crate) interval: u32,
    /// [`Spin::VALUE`] and what else there is: five bits.
    pub(crate) state: u8,
}

impl Spin {
    /// Nothing was seen yet.
    pub const UNSEEN: Self = Self { edge_at: 0, interval: 0, state: 0 };

    /// The spin bit.
    pub(crate) const VALUE: u8 = 1;
    /// That it is known.
    pub(crate) const SEEN: u8 = 2;
    /// The latest edge of the flow was in this direction, so that it is the other side's turn.
    pub(crate) const LATEST: u8 = 4;
    /// Since the latest edge of the flow, one came too early here.
    pub(crate) const EARLY: u8 = 8;
    /// The limits allow what begins with the last edge.
    pub(crate) const RECORDED: u8 = 16;

    /// Takes into account that packets went by unseen.
    #[inline(always)]
    pub(crate) fn invalidate(&mut self) {
        self.edge_at = 0;
        self.state = 0;
    }

    /// Whether a packet with this spin bit is anything but one more of the same.
    #[inline(always)]
    pub(crate) fn is_changed(&self, value: u8) -> bool {
        Self::would_change(self.state, value)
    }

    /// The same, by the flags alone.
    #[inline(always)]
    pub(crate) fn would_change(flags: u8, value: u8) -> bool {
        flags & (Self::SEEN | Self::VALUE) != Self::SEEN | value
    }

    #[inline(always)]
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.state & flag != 0
    }

    /// Whether an edge at `now` is too early.
    #[inline(always)]
    pub(crate) fn is_early(&self, now: u64) -> bool {
        self.edge_at != 0 && now.saturating_sub(self.edge_at) < self.measure() / EARLY_SHARE
    }

    /// The measure of the interval, ns.
    #[inline(always)]
    fn measure(&self) -> u64 {
        u64::from(self.interval) << 10
    }

    /// The measure after an interval of so many ns (rule 12).
    #[inline(always)]
    fn next_interval(&self, since: u64) -> u32 {
        let (least, most) = match self.interval {
            0 => (0, u32::MAX),
            before if before < u32::MAX / 2 => (before / 2, before * 2),
            before => (before / 2, u32::MAX),
        };
        let interval = since >> 10;
        if interval <= u64::from(least) {
            least
        } else if interval < u64::from(most) {
            interval as u32
        } else {
            most
        }
    }
}

/// The state of a flow of UDP datagrams: 0 before it is recognised as QUIC, then how far its spin bits are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Connection(pub(crate) u8);

impl Connection {
    /// It was recognised just now (rule 10).
    pub(crate) const RECOGNISED: Self = Self(FIRST);

    /// It may be QUIC.
    pub const UNKNOWN: Self = Self(0);

    /// Whether it is.
    #[inline(always)]
    pub(crate) fn is_recognised(self) -> bool {
        self.0 != 0
    }

    /// Whether its spin bits are believed.
    #[inline(always)]
    pub(crate) fn is_believed(self) -> bool {
        self.0 >= BELIEVED
    }

    #[inline(always)]
    pub(crate) fn gain(&mut self) {
        if self.0 < MOST {
            self.0 += 1;
        }
    }

    #[inline(always)]
    pub(crate) fn lose(&mut self, trust: u8) {
        self.0 = if self.0 > LEAST + trust { self.0 - trust } else { LEAST };
    }
}

/// Rule 8.
#[inline(always)]
pub(crate) fn breach(spin: &mut Spin, other: &mut Spin, connection: &mut Connection) {
    if !connection.is_believed() {
        *spin = Spin::UNSEEN;
        *other = Spin::UNSEEN;
        connection.lose(BREACH);
        return;
    }
    if spin.edge_at != 0 || other.edge_at != 0 {
        connection.lose(BREACH);
    }
    spin.edge_at = 0;
    other.edge_at = 0;
}

/// Rules 11 and 12.
#[inline(always)]
pub(crate) fn take_edge(
    spin: &mut Spin,
    other: &mut Spin,
    value: u8,
    now: u64,
    is_believed: bool,
    plan: &mut MatchPlan,
) {
    if spin.edge_at != 0 {
        let since = now.saturating_sub(spin.edge_at);
        let is_credible = since >= spin.measure() / 2 && since <= LONGEST;
        if is_believed && is_credible && spin.has(Spin::RECORDED) {
            plan.method = Method::QuicSpin;
            plan.recorded_at = spin.edge_at;
            plan.midpoint_at = other.edge_at;
            plan.matched = u32::from(value);
        }
        spin.interval = spin.next_interval(since);
    }
    spin.edge_at = now;
    spin.state = Spin::SEEN | Spin::LATEST | value;
    other.state &= !(Spin::LATEST | Spin::EARLY);
}
