//! Opening and closing of flows.

use super::{
    direction::FlowDirection,
    lifecycle::{Changes, Lifecycle, Reason},
};
use crate::{
    limits::{CLOSED_IDLE_SECONDS, IDLE_SECONDS, QUIC_IDLE_SECONDS, UNANSWERED_IDLE_SECONDS},
    parse::{Datagram, Kind, Segment, TcpFlags, Transport},
    rtt::{Leg, RttSummary, TsvalState},
};

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
    direction.rtt = RttSummary::EMPTY;
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
