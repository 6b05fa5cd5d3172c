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
//!     the interval is at least half the measure that there was before, and at most [`LONGEST`], since nobody sent anything
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

use super::{
    leg::{Leg, LegState},
    plan::MatchPlan,
    rules::{RttSummary, Rules},
};
use crate::{
    limits::PENDING_LIFETIME,
    method::{Method, Methods},
    parse::{Quic, QuicForm},
};

/// Nanoseconds in which a client sends the packets of its first flight. A retransmission takes longer: 150 ms at the least.
const FLIGHT: u64 = 50_000_000;
/// The longest interval between two edges that is a sample, ns.
const LONGEST: u64 = PENDING_LIFETIME;
/// One part in so many of an interval is too early for an edge.
const EARLY_SHARE: u64 = 8;

/// The least trust that a recognised flow has.
const LEAST: u8 = 1;
/// What it has first.
const FIRST: u8 = 10;
/// What it takes to be believed.
const BELIEVED: u8 = 16;
/// The most.
const MOST: u8 = 24;
/// What an edge out of turn costs.
const BREACH: u8 = 4;

/// What is known of the spin bit of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Spin {
    /// When the last edge was seen, ns; 0 before the first, and while that is in doubt.
    pub(crate) edge_at: u64,
    /// The measure of the interval between two edges, in units of 1024 ns; 0 before there were two.
    pub(super) interval: u32,
    /// [`Spin::VALUE`] and what else there is.
    pub(super) state: u8,
    /// Fills up to a multiple of 8.
    pub(super) reserved: [u8; 3],
}

impl Spin {
    /// Nothing was seen yet.
    pub const UNSEEN: Self = Self { edge_at: 0, interval: 0, state: 0, reserved: [0; 3] };

    /// The spin bit.
    const VALUE: u8 = 1;
    /// That it is known.
    const SEEN: u8 = 2;
    /// The latest edge of the flow was in this direction, so that it is the other side's turn.
    const LATEST: u8 = 4;
    /// Since the latest edge of the flow, one came too early here.
    const EARLY: u8 = 8;
    /// The limits allow what begins with the last edge.
    const RECORDED: u8 = 16;

    /// Takes into account that packets went by unseen.
    #[inline(always)]
    pub(crate) fn invalidate(&mut self) {
        self.edge_at = 0;
        self.state = 0;
    }

    /// Whether a packet with this spin bit is anything but one more of the same.
    #[inline(always)]
    fn is_changed(&self, value: u8) -> bool {
        self.state & (Self::SEEN | Self::VALUE) != Self::SEEN | value
    }

    #[inline(always)]
    fn has(&self, flag: u8) -> bool {
        self.state & flag != 0
    }

    /// Whether an edge at `now` is too early.
    #[inline(always)]
    fn is_early(&self, now: u64) -> bool {
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

/// What is known of a flow of UDP datagrams: 0 before it is recognised as QUIC, then how far its spin bits are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Connection(u8);

impl Connection {
    /// It may be QUIC.
    pub const UNKNOWN: Self = Self(0);

    /// Whether it is.
    #[inline(always)]
    pub(crate) fn is_recognised(self) -> bool {
        self.0 != 0
    }

    /// Whether its spin bits are believed.
    #[inline(always)]
    fn is_believed(self) -> bool {
        self.0 >= BELIEVED
    }

    #[inline(always)]
    fn gain(&mut self) {
        if self.0 < MOST {
            self.0 += 1;
        }
    }

    #[inline(always)]
    fn lose(&mut self, trust: u8) {
        self.0 = if self.0 > LEAST + trust { self.0 - trust } else { LEAST };
    }
}

const _: () = assert!(size_of::<Spin>() == 16);

/// What is kept of a flow that may be QUIC, as seen from the sender of a packet.
pub(crate) struct State<'a> {
    /// Whether it is QUIC, and how far its spin bits are trusted.
    pub(crate) connection: &'a mut Connection,
    /// The version of the latest long header while it is not recognised.
    pub(crate) version: &'a mut u32,
    /// The leg of the sender, and that of the other side.
    pub(crate) legs: (&'a mut Leg, &'a mut Leg),
    /// The spin bits of the sender, and those of the other side.
    pub(crate) spins: (&'a mut Spin, &'a mut Spin),
    /// The RTTs of what the other side sent.
    pub(crate) rtt: &'a mut RttSummary,
    /// Not 0 if the sender is an address of this host, and if the other side is. As numbers, so that nothing branches on one that
    /// does not matter: the verifier would follow both ways.
    pub(crate) local: (u32, u32),
}

/// Whether a packet could change anything.
#[inline(always)]
pub(crate) fn has_effect(
    connection: Connection,
    (forward, reverse): (&Leg, &Leg),
    spin: &Spin,
    quic: &Quic,
    methods: Methods,
) -> bool {
    if quic.form == QuicForm::Short {
        return spin.is_changed(u8::from(quic.spin))
            && connection.is_recognised()
            && methods.has(Method::QuicSpin);
    }
    // A leg that was never begun has no number either, but then the direction has not sent anything yet.
    !connection.is_recognised()
        || reverse.is_pending()
        || forward.is_pending()
        || forward.state == LegState::Unseen
        || forward.number != quic.source_id
}

impl State<'_> {
    /// Notes a packet, and what it completes.
    #[inline(always)]
    pub(crate) fn plan(&mut self, quic: &Quic, now: u64, rules: &Rules, plan: &mut MatchPlan) {
        if quic.form != QuicForm::Short {
            self.match_reply(quic, plan);
            if quic.form != QuicForm::Negotiation {
                self.recognise(quic);
                self.note_ids(quic, now, rules);
            }
        } else if self.connection.is_recognised() && rules.methods.has(Method::QuicSpin) {
            self.note_spin(u8::from(quic.spin), now, rules, plan);
        }
    }

    /// Rule 4.
    #[inline(always)]
    fn match_reply(&mut self, quic: &Quic, plan: &mut MatchPlan) {
        let (_, leg) = &mut self.legs;
        if leg.is_pending() && leg.number == quic.destination_id {
            leg.state = LegState::Done;
            plan.method = Method::QuicHandshake;
            plan.recorded_at = leg.since;
            plan.matched = quic.version;
            plan.completes_leg = 1;
        }
    }

    /// Rule 1.
    #[inline(always)]
    fn recognise(&mut self, quic: &Quic) {
        if self.connection.is_recognised() {
            return;
        }
        let (_, reverse) = &self.legs;
        // The side that has sent no long header has no source ID, which is as good as an empty one here.
        let is_answer = quic.destination_id != 0 && quic.destination_id == reverse.number;
        if quic.is_known || is_answer && quic.version == *self.version {
            *self.connection = Connection(FIRST);
        }
        *self.version = quic.version;
    }

    /// Rules 2, 3, 5 and 14.
    #[inline(always)]
    fn note_ids(&mut self, quic: &Quic, now: u64, rules: &Rules) {
        let (_, receiver) = self.local;
        let timed = rules.include_local || receiver == 0;
        let (leg, reverse) = &mut self.legs;
        let is_initial = quic.form == QuicForm::Initial;
        if leg.is_pending() {
            if is_initial && now.saturating_sub(leg.since) > FLIGHT {
                leg.state = LegState::Void;
            }
            return;
        }
        let is_first = leg.state == LegState::Unseen;
        if is_first {
            let begins = is_initial && reverse.state == LegState::Unseen;
            let waits = begins && timed && rules.methods.has(Method::QuicHandshake);
            leg.since = now;
            leg.state = if waits { LegState::Asked } else { LegState::Done };
        }
        if leg.number != quic.source_id {
            leg.number = quic.source_id;
            let (forward, reverse) = &mut self.spins;
            forward.invalidate();
            reverse.invalidate();
        }
    }

    /// Rules 6 to 13.
    #[inline(always)]
    fn note_spin(&mut self, value: u8, now: u64, rules: &Rules, plan: &mut MatchPlan) {
        let (receiver, _) = self.local;
        let timed = rules.include_local || receiver == 0;
        let mut connection = *self.connection;
        let (forward, reverse) = &mut self.spins;
        if !forward.is_changed(value) {
            return;
        }
        if !forward.has(Spin::SEEN) {
            forward.state = Spin::SEEN | value;
            return;
        }
        if forward.is_early(now) {
            if reverse.has(Spin::EARLY) {
                **forward = Spin::UNSEEN;
                **reverse = Spin::UNSEEN;
                connection.lose(1);
            } else if !forward.has(Spin::EARLY) {
                forward.state |= Spin::EARLY;
                connection.lose(1);
            }
        } else if forward.has(Spin::LATEST) {
            breach(forward, reverse, &mut connection);
        } else {
            if reverse.has(Spin::LATEST) {
                connection.gain();
            }
            take_edge(forward, reverse, value, now, connection.is_believed(), plan);
            if timed && rules.allow(self.rtt, now) {
                self.rtt.recorded_at = now;
                forward.state |= Spin::RECORDED;
            }
        }
        *self.connection = connection;
    }
}

/// Rule 8.
#[inline(always)]
fn breach(spin: &mut Spin, other: &mut Spin, connection: &mut Connection) {
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
fn take_edge(
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
