//! The life of a flow: each direction opens when its first packet is answered, and closes by FIN or RST
//! or when the flow has been idle too long.

use super::FlowDirection;
use crate::{
    limits::{CLOSED_IDLE_SECONDS, IDLE_SECONDS, QUIC_IDLE_SECONDS, UNANSWERED_IDLE_SECONDS},
    parse::{Datagram, Kind, Segment, TcpFlags, Transport},
    rtt::{Leg, TsvalState},
};

/// How far the life of a direction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Lifecycle {
    /// Nothing was sent yet.
    Unseen,
    /// Something was sent, and nothing came back yet.
    Unanswered,
    /// Something was sent and answered.
    Open,
    /// The sender said that it is done.
    Closed,
}

/// Why a flow direction opened or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Opened: its first packet was in mid-stream, or its protocol has no connections.
    FirstObserved,
    /// Opened by a SYN.
    Syn,
    /// Opened by a SYN-ACK.
    SynAck,
    /// Closed by a FIN.
    Fin,
    /// Closed by a RST.
    Rst,
    /// Closed for being idle.
    Timeout,
}

impl Reason {
    /// How many reasons are told apart, rounded up to a power of two.
    pub const COUNT: usize = 8;

    /// Why a flow can open.
    pub const OPENING: [Self; 3] = [Self::FirstObserved, Self::Syn, Self::SynAck];

    /// Why a flow can close.
    pub const CLOSING: [Self; 3] = [Self::Fin, Self::Rst, Self::Timeout];
}

/// What a packet changed in the life of its flow. Flat, as [`crate::parse::Frame`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and the others are no state")]
pub struct Changes {
    /// Whether the packet opened the reverse direction by answering.
    pub opened: bool,
    /// What the first packet of that direction was.
    pub opened_by: Reason,
    /// When it was sent, ns.
    pub opened_at: u64,
    /// Whether the flow as a whole opened with it: the forward direction had not.
    pub opened_first: bool,
    /// Whether the packet closed its own direction.
    pub closed_forward: bool,
    /// Whether it closed the other one.
    pub closed_reverse: bool,
    /// Why.
    pub closed_by: Reason,
    /// Whether the flow as a whole closed with it: no direction is open any more.
    pub closed_last: bool,
}

impl Changes {
    /// Nothing changed.
    pub const NONE: Self = Self {
        opened: false,
        opened_by: Reason::FirstObserved,
        opened_at: 0,
        opened_first: false,
        closed_forward: false,
        closed_reverse: false,
        closed_by: Reason::Timeout,
        closed_last: false,
    };
}

impl Lifecycle {
    #[inline(always)]
    pub(super) fn is_live(self) -> bool {
        matches!(self, Self::Unanswered | Self::Open)
    }
}

/// Whether [`step`] could change anything.
#[inline(always)]
pub(super) fn has_effect(forward: &FlowDirection, reverse: &FlowDirection, transport: &Transport) -> bool {
    reverse.lifecycle == Lifecycle::Unanswered
        || match transport.kind {
            Kind::Tcp => {
                let flags = transport.segment.flags;
                !forward.established || flags.syn() || flags.fin() || flags.rst()
            }
            Kind::Echo => forward.lifecycle == Lifecycle::Unseen && !transport.echo.is_reply,
            Kind::Quic | Kind::Dns => forward.lifecycle == Lifecycle::Unseen,
        }
}

#[inline(always)]
pub(super) fn step(
    forward: &mut FlowDirection,
    reverse: &mut FlowDirection,
    transport: &Transport,
    now: u64,
) -> Changes {
    let flags = transport.segment.flags;
    let is_tcp = transport.kind == Kind::Tcp;
    let is_over = forward.established || forward.lifecycle == Lifecycle::Closed;
    if is_tcp && flags.syn() && !flags.ack() && is_over {
        // The ports are used again: nothing of the earlier connection is of any meaning here.
        forget(forward);
        forget(reverse);
    }
    let is_reset = is_tcp && flags.rst();
    // A reply asks for no answer, so its direction never opens.
    let begins = transport.kind != Kind::Echo || !transport.echo.is_reply;
    let mut changes = Changes::NONE;
    if reverse.lifecycle == Lifecycle::Unanswered && !is_reset {
        reverse.lifecycle = Lifecycle::Open;
        changes.opened = true;
        changes.opened_by = reverse.opened_by;
        changes.opened_at = reverse.opened_at;
        // If it is closed, it never was open: a FIN was the first that was seen of the flow. Had it been
        // open, its FIN would have answered the reverse direction, and so opened that.
        changes.opened_first = forward.lifecycle != Lifecycle::Open;
    }
    if forward.lifecycle == Lifecycle::Unseen && begins {
        forward.lifecycle = Lifecycle::Unanswered;
        forward.opened_at = now;
        forward.opened_by = opening_reason(transport);
    }
    if is_tcp {
        forward.established |= !flags.syn();
        close(forward, reverse, flags, &mut changes);
    }
    changes
}

#[inline(always)]
fn close(forward: &mut FlowDirection, reverse: &mut FlowDirection, flags: TcpFlags, changes: &mut Changes) {
    if !flags.rst() && !flags.fin() {
        return;
    }
    let forward_was_open = forward.lifecycle == Lifecycle::Open;
    let reverse_was_open = reverse.lifecycle == Lifecycle::Open;
    changes.closed_by = if flags.rst() { Reason::Rst } else { Reason::Fin };
    changes.closed_forward = forward_was_open;
    changes.closed_reverse = reverse_was_open && flags.rst();
    changes.closed_last = if flags.rst() {
        forward_was_open || reverse_was_open
    } else {
        forward_was_open && !reverse_was_open
    };
    forward.lifecycle = Lifecycle::Closed;
    if flags.rst() {
        reverse.lifecycle = Lifecycle::Closed;
    }
}

#[inline(always)]
fn opening_reason(transport: &Transport) -> Reason {
    let flags = transport.segment.flags;
    match transport.kind {
        Kind::Tcp if flags.syn() && flags.ack() => Reason::SynAck,
        Kind::Tcp if flags.syn() => Reason::Syn,
        Kind::Tcp | Kind::Echo | Kind::Quic | Kind::Dns => Reason::FirstObserved,
    }
}

/// Forgets all but the counts of packets, which belong to the 5-tuple.
#[inline(always)]
fn forget(direction: &mut FlowDirection) {
    direction.lifecycle = Lifecycle::Unseen;
    direction.established = false;
    direction.tsval_state = TsvalState::Unknown;
    direction.recorded_at = 0;
    direction.min_rtt = FlowDirection::NO_RTT;
    direction.smoothed_rtt = 0;
    direction.leg = Leg::UNSEEN;
    direction.pending.clear();
}

/// Seconds that a flow may be idle.
#[inline(always)]
pub(super) fn idle_limit(low: &FlowDirection, high: &FlowDirection, number: u8) -> u32 {
    if !low.lifecycle.is_live() && !high.lifecycle.is_live() {
        CLOSED_IDLE_SECONDS
    } else if number == Datagram::NUMBER {
        QUIC_IDLE_SECONDS
    } else if number != Segment::NUMBER
        || low.lifecycle != Lifecycle::Open && high.lifecycle != Lifecycle::Open
    {
        UNANSWERED_IDLE_SECONDS
    } else {
        IDLE_SECONDS
    }
}
