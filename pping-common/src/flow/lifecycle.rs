//! The life of a flow: each direction opens when its first packet is answered, and closes by FIN or RST
//! or when the flow has been idle too long.

use super::{Direction, TsvalState};
use crate::{
    limits::{CLOSED_IDLE_SECONDS, IDLE_SECONDS, UNANSWERED_IDLE_SECONDS},
    parse::{Segment, Transport},
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
    pub const PLACES: usize = 8;

    /// Why a flow can open.
    pub const OPENING: [Self; 3] = [Self::FirstObserved, Self::Syn, Self::SynAck];

    /// Why a flow can close.
    pub const CLOSING: [Self; 3] = [Self::Fin, Self::Rst, Self::Timeout];
}

/// A direction that a packet of the other one opened by answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// What its first packet was.
    pub reason: Reason,
    /// When its first packet was sent, ns.
    pub at: u64,
    /// Whether the flow as a whole opened: the other direction had not.
    pub is_first: bool,
}

/// Directions that a packet closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// Why.
    pub reason: Reason,
    /// That of the packet.
    pub forward: bool,
    /// The other one.
    pub reverse: bool,
    /// Whether the flow as a whole closed: no direction is open any more.
    pub is_last: bool,
}

/// What a packet changed in the life of its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The reverse direction opened.
    pub opened: Option<Opening>,
    /// Directions closed.
    pub closed: Option<Close>,
}

impl Lifecycle {
    #[inline(always)]
    fn is_live(self) -> bool {
        matches!(self, Self::Unanswered | Self::Open)
    }
}

/// Whether [`step`] could change anything.
#[inline(always)]
pub(super) fn concerns(forward: &Direction, reverse: &Direction, transport: &Transport) -> bool {
    reverse.lifecycle == Lifecycle::Unanswered
        || match transport {
            Transport::Tcp(segment) => {
                let flags = segment.flags;
                !forward.established || flags.syn() || flags.fin() || flags.rst()
            }
            Transport::Echo(echo) => forward.lifecycle == Lifecycle::Unseen && !echo.is_reply,
        }
}

#[inline(always)]
pub(super) fn step(
    forward: &mut Direction,
    reverse: &mut Direction,
    transport: &Transport,
    now: u64,
) -> Changes {
    let (begins, reset) = match transport {
        Transport::Tcp(segment) => {
            let is_over = forward.established || forward.lifecycle == Lifecycle::Closed;
            if segment.flags.syn() && !segment.flags.ack() && is_over {
                // The ports are used again: nothing of the earlier connection is of any meaning here.
                forget(forward);
                forget(reverse);
            }
            (true, segment.flags.rst())
        }
        // A reply asks for no answer, so its direction never opens.
        Transport::Echo(echo) => (!echo.is_reply, false),
    };
    let mut changes = Changes::default();
    if reverse.lifecycle == Lifecycle::Unanswered && !reset {
        reverse.lifecycle = Lifecycle::Open;
        changes.opened = Some(Opening {
            reason: reverse.opened_by,
            at: reverse.opened_at,
            is_first: forward.lifecycle == Lifecycle::Unseen || forward.lifecycle == Lifecycle::Unanswered,
        });
    }
    if forward.lifecycle == Lifecycle::Unseen && begins {
        forward.lifecycle = Lifecycle::Unanswered;
        forward.opened_at = now;
        forward.opened_by = opening_reason(transport);
    }
    if let Transport::Tcp(segment) = transport {
        if !segment.flags.syn() {
            forward.established = true;
        }
        changes.closed = close(forward, reverse, segment);
    }
    changes
}

#[inline(always)]
fn close(forward: &mut Direction, reverse: &mut Direction, segment: &Segment) -> Option<Close> {
    let reason = if segment.flags.rst() {
        Reason::Rst
    } else if segment.flags.fin() {
        Reason::Fin
    } else {
        return None;
    };
    let was_open = |direction: &Direction| direction.lifecycle == Lifecycle::Open;
    let close = Close {
        reason,
        forward: was_open(forward),
        reverse: reason == Reason::Rst && was_open(reverse),
        is_last: (was_open(forward) || was_open(reverse)) && (reason == Reason::Rst || !was_open(reverse)),
    };
    forward.lifecycle = Lifecycle::Closed;
    if reason == Reason::Rst {
        reverse.lifecycle = Lifecycle::Closed;
    }
    (close.forward || close.reverse).then_some(close)
}

#[inline(always)]
fn opening_reason(transport: &Transport) -> Reason {
    match transport {
        Transport::Tcp(segment) if segment.flags.syn() && segment.flags.ack() => Reason::SynAck,
        Transport::Tcp(segment) if segment.flags.syn() => Reason::Syn,
        Transport::Tcp(_) | Transport::Echo(_) => Reason::FirstObserved,
    }
}

/// Forgets all but the counts of packets, which belong to the 5-tuple.
#[inline(always)]
fn forget(direction: &mut Direction) {
    direction.lifecycle = Lifecycle::Unseen;
    direction.established = false;
    direction.tsval_state = TsvalState::Unknown;
    direction.recorded_at = 0;
    direction.min_rtt = 0;
    direction.smoothed_rtt = 0;
    direction.slots.clear();
}

/// Seconds that a flow may be idle.
#[inline(always)]
pub(super) fn idle_limit(low: &Direction, high: &Direction, number: u8) -> u32 {
    if !low.lifecycle.is_live() && !high.lifecycle.is_live() {
        CLOSED_IDLE_SECONDS
    } else if number != Segment::NUMBER
        || low.lifecycle != Lifecycle::Open && high.lifecycle != Lifecycle::Open
    {
        UNANSWERED_IDLE_SECONDS
    } else {
        IDLE_SECONDS
    }
}
