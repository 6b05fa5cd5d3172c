//! `quic-spin` and `quic-handshake`.
//!
//! Recognition
//!
//! 1. A flow begins with a client's first Initial: in a datagram of at least 1200 bytes, with a destination ID of at least
//!    8 (RFC 9000, 14.1 and 7.2). In unknown versions each long header counts as an Initial. The flow is recognised as
//!    QUIC with the first long header that has a known or greased version. A long header of another version will do if the
//!    flow's previous long header had the same version, and if its destination ID is not empty and equals the source ID of
//!    the other end. IDs are compared by their digest. A packet whose fixed bit is cleared (RFC 9287) begins no flow, and
//!    means nothing in a flow that is not recognised; in one that is, the bit does not matter.
//! 2. The source ID of an end is that of its latest long header; while its first one is pending, that of the first.
//!    Version negotiation counts only as a reply.
//!
//! `quic-handshake`
//!
//! 3. The packet that begins the flow is pending if what its end sends is timed.
//! 4. The reply is the first long header of the other end whose destination ID is the source ID of the pending packet. If
//!    the flow is not recognised, the ID must not be empty. The reply gives a sample, unless it is a Handshake packet, which
//!    follows a reply that was missed; the identifier is the version of the reply.
//! 5. If the same end sends another Initial more than [`FLIGHT`] later, it is a retransmission. The reply would be
//!    ambiguous, so nothing is pending any more (Karn's rule). Until then an Initial belongs to the same flight and
//!    changes nothing.
//!
//! 5a. A client's first Initial (rule 1) of the end that began the flow begins another connection at the same ports, if its
//!    source ID differs, or if one is pending with another destination ID. It is pending as in rule 3, and takes the place
//!    of what was.
//!
//! `quic-spin`
//!
//! If the spin bit is in use (RFC 9000, 17.4), the two ends take turns to send an edge: the server reflects the client's
//! value, and the client inverts the value that it receives. So each direction of a recognised flow has a value, the time
//! of its last edge, and a measure of the interval between two edges. The flow has a turn (the end whose edge comes
//! next), and trust. Only short headers count.
//!
//! 6. The first packet of a direction sets its value. A packet with another value is an edge if rules 7 and 8 allow it:
//!    it sets the value and the time of the last edge, and the other end gets the turn. Before the first edge either end
//!    has the turn.
//! 7. A packet is early if the last edge of its direction was less than 1 / [`EARLY_DIVISOR`] of the measure ago: it was
//!    reordered. It is ignored. The first early packet of a direction since the latest edge of the flow costs 1 of trust.
//!    If the other direction had an early packet since that edge, too, the RTT fell, and both directions start over.
//! 8. Otherwise the packet is also ignored if its end does not have the turn: it was reordered by more than that, or an
//!    edge was missed, or the last change was no true edge. If the flow is believed, the last edges of both directions lose their
//!    times, which costs [`OUT_OF_TURN_COST`] of trust if either had one. If the flow is not believed, it costs
//!    [`OUT_OF_TURN_COST`] in any case, and both directions start over.
//! 9. An edge gains 1 of trust, unless either end had the turn. If it ends an interval of less than half the measure, it
//!    costs [`SHORT_COST`] instead: an end that sets the bit at random seems to spin if the other end is near and answers
//!    each of its changes, but the intervals have nothing in common.
//! 10. Trust is [`INITIAL_TRUST`] when the flow is recognised, and always stays between [`MIN_TRUST`] and
//!     [`MAX_TRUST`]. From [`BELIEVED`] on the flow is believed: with its 7th edge if nothing goes wrong, otherwise
//!     with the 16th in a row at the latest. If one end or both grease the bit, few flows get that far, and not for
//!     long.
//! 11. An edge ends an interval if the last edge of its direction has a time. The interval is a sample if the flow is
//!     believed by now, and if the interval is at least half the previous measure and at most [`LONGEST`]: in a longer
//!     one, neither end sent anything for a while. The identifier is the value. The part of the RTT beyond the sender of
//!     the edge is the time since the last edge of the other direction.
//! 12. The measure is the last interval in units of 1024 ns, rounded down. If there was a measure before, it changes at
//!     most to its double or to its half (rounded down), so that neither a pause nor a late packet alone decides what is
//!     early from then on.
//! 13. As with an echo, what the other end sends is timed. So samples are taken only if that is timed, and only if the
//!     limits on what the other end sends allowed the edge that begins the interval to record.
//! 14. A direction that starts over has no value, no last edge and no measure, and either end has the turn. If packets
//!     were missed, both directions start over, except that they keep the measure. They do the same with a long header that
//!     changes the source ID of its end, because it may begin another connection.
//!
//! So a sample is too long by the time that the hosts waited until they had something to send, and by the time until the
//! next packet after a lost one. It is too short only if packets are overtaken by more than a quarter of the RTT: one
//! sample in thousands, and one in fifty if it is a whole RTT.

use super::plan::MatchPlan;
use crate::{limits::PENDING_LIFETIME, method::Method};

/// The time within which a client sends the packets of its first flight, ns. A retransmission comes later: after 150 ms
/// at the earliest.
pub(crate) const FLIGHT: u64 = 50_000_000;
/// The longest interval between two edges that is a sample, ns.
const LONGEST: u64 = PENDING_LIFETIME;
/// An edge that comes within one part in this many of the measure is early.
const EARLY_DIVISOR: u64 = 8;

/// The lowest trust of a recognised flow.
const MIN_TRUST: u8 = 1;
/// The trust of a flow when it is recognised.
const INITIAL_TRUST: u8 = 10;
/// The trust from which samples are taken.
const BELIEVED: u8 = 16;
/// The highest trust.
const MAX_TRUST: u8 = 24;
/// The trust that an edge out of turn costs.
const OUT_OF_TURN_COST: u8 = 4;
/// The trust that an interval of less than half the measure costs.
const SHORT_COST: u8 = 8;

/// The state of the spin bit of a flow direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    /// When the last edge was seen, ns; 0 before the first, and while the time is not known.
    pub(crate) edge_at: u64,
    /// The measure of the interval between two edges, in units of 1024 ns; 0 before the second edge.
    pub(crate) interval: u32,
    /// [`Spin::VALUE`] and the other flags: five bits.
    pub(crate) state: u8,
}

impl Spin {
    /// Nothing was seen yet.
    pub const UNSEEN: Self = Self { edge_at: 0, interval: 0, state: 0 };

    /// The value of the spin bit.
    pub(crate) const VALUE: u8 = 1;
    /// The value is known.
    pub(crate) const SEEN: u8 = 2;
    /// The latest edge of the flow was in this direction, so the other end has the turn.
    pub(crate) const LATEST: u8 = 4;
    /// Since the latest edge of the flow, a packet of this direction was early.
    pub(crate) const EARLY: u8 = 8;
    /// The limits allowed the last edge to record.
    pub(crate) const RECORDED: u8 = 16;

    /// Takes into account that packets were missed.
    #[inline(always)]
    pub(crate) fn invalidate(&mut self) {
        self.edge_at = 0;
        self.state = 0;
    }

    /// Whether a packet with this spin bit changes the value or is the first.
    #[inline(always)]
    pub(crate) fn is_changed(&self, value: u8) -> bool {
        Self::would_change(self.state, value)
    }

    /// The same as [`Spin::is_changed`], by the flags alone.
    #[inline(always)]
    pub(crate) fn would_change(flags: u8, value: u8) -> bool {
        flags & (Self::SEEN | Self::VALUE) != Self::SEEN | value
    }

    #[inline(always)]
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.state & flag != 0
    }

    /// Whether a packet at `now` is early (rule 7).
    #[inline(always)]
    pub(crate) fn is_early(&self, now: u64) -> bool {
        self.edge_at != 0 && now.saturating_sub(self.edge_at) < self.measure() / EARLY_DIVISOR
    }

    /// The measure of the interval, ns.
    #[inline(always)]
    fn measure(&self) -> u64 {
        u64::from(self.interval) << 10
    }

    /// The measure after an interval of `since` ns (rule 12).
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

/// The state of a UDP flow: 0 before it is recognised as QUIC, then the trust in its spin bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SpinTrust(pub(crate) u8);

impl SpinTrust {
    /// The flow was just recognised (rule 10).
    pub(crate) const RECOGNISED: Self = Self(INITIAL_TRUST);

    /// The flow is not recognised yet.
    pub const UNKNOWN: Self = Self(0);

    /// Whether the flow is recognised as QUIC.
    #[inline(always)]
    pub(crate) fn is_recognised(self) -> bool {
        self.0 != 0
    }

    /// Whether the flow's spin bits are believed.
    #[inline(always)]
    pub(crate) fn is_believed(self) -> bool {
        self.0 >= BELIEVED
    }

    #[inline(always)]
    pub(crate) fn gain(&mut self) {
        if self.0 < MAX_TRUST {
            self.0 += 1;
        }
    }

    #[inline(always)]
    pub(crate) fn lose(&mut self, trust: u8) {
        self.0 = if self.0 > MIN_TRUST + trust { self.0 - trust } else { MIN_TRUST };
    }
}

/// Applies rule 9 to an edge.
#[inline(always)]
pub(crate) fn judge_edge(spin: &Spin, other: &Spin, now: u64, trust: &mut SpinTrust) {
    if !other.has(Spin::LATEST) {
        return;
    }
    if spin.edge_at != 0 && now.saturating_sub(spin.edge_at) < spin.measure() / 2 {
        trust.lose(SHORT_COST);
    } else {
        trust.gain();
    }
}

/// Applies rule 8 to a packet out of turn.
#[inline(always)]
pub(crate) fn reject_out_of_turn(spin: &mut Spin, other: &mut Spin, trust: &mut SpinTrust) {
    if !trust.is_believed() {
        *spin = Spin::UNSEEN;
        *other = Spin::UNSEEN;
        trust.lose(OUT_OF_TURN_COST);
        return;
    }
    if spin.edge_at != 0 || other.edge_at != 0 {
        trust.lose(OUT_OF_TURN_COST);
    }
    spin.edge_at = 0;
    other.edge_at = 0;
}

/// Applies rules 11 and 12 to an edge.
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
