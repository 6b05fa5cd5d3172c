//! Opening and closing flows.

use super::{
    hot::DirectionState,
    key::Endpoint,
    lifecycle::{Changes, Lifecycle, Reason},
    locked::{LockedFlow, PendingLookup},
};
use crate::{
    limits::{CLOSED_IDLE_SECONDS, IDLE_SECONDS, QUIC_IDLE_SECONDS, UNANSWERED_IDLE_SECONDS},
    parse::{Datagram, Kind, Segment, TcpFlags, Transport},
    rtt::{Leg, RttSummary, TsvalState},
};

/// Whether [`step`] could change anything for a packet.
#[inline(always)]
pub(super) fn has_effect(forward: DirectionState, reverse: DirectionState, transport: &Transport) -> bool {
    reverse.lifecycle() == Lifecycle::UNANSWERED
        || match transport.kind {
            Kind::Tcp => {
                let flags = transport.segment.flags;
                !forward.is_established() || flags.syn() || flags.fin() || flags.rst()
            }
            Kind::Echo => forward.lifecycle() == Lifecycle::UNSEEN && !transport.echo.is_reply,
            Kind::Quic | Kind::Dns => forward.lifecycle() == Lifecycle::UNSEEN,
        }
}

#[inline(always)]
pub(super) fn step<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    transport: &Transport,
    now: u64,
) -> Changes {
    let flags = transport.segment.flags;
    let is_tcp = transport.kind == Kind::Tcp;
    let state = flow.hot.state(from);
    let is_over = state.is_established() || state.lifecycle() == Lifecycle::CLOSED;
    if is_tcp && flags.syn() && !flags.ack() && is_over {
        // The ports are reused: nothing of the earlier connection holds any more.
        forget(flow, from);
        forget(flow, from.other());
    }
    let is_reset = is_tcp && flags.rst();
    // A reply asks for no answer, so its direction never opens.
    let begins = transport.kind != Kind::Echo || !transport.echo.is_reply;
    let (mut forward, mut reverse) = (flow.hot.state(from), flow.hot.state(from.other()));
    let mut changes = Changes::NONE;
    if reverse.lifecycle() == Lifecycle::UNANSWERED && !is_reset {
        reverse.set_lifecycle(Lifecycle::OPEN);
        changes.opened = true;
        changes.opened_by = flow.locked.opened_by(from.other());
        changes.opened_at = flow.locked.direction(from.other()).opened_at;
        // If the forward direction is closed, it was never open: the flow was first seen by a FIN. Had it been open, its
        // FIN would have answered the reverse direction, and so opened it.
        changes.opened_first = forward.lifecycle() != Lifecycle::OPEN;
    }
    if forward.lifecycle() == Lifecycle::UNSEEN && begins {
        forward.set_lifecycle(Lifecycle::UNANSWERED);
        let is_first = reverse.lifecycle() == Lifecycle::UNSEEN;
        flow.locked.open(from, now, opening_reason(transport), is_first);
    }
    if is_tcp {
        forward.set_established(forward.is_established() || !flags.syn());
        close(&mut forward, &mut reverse, flags, &mut changes);
    }
    if changes.closed_last {
        flow.locked.close(now, changes.closed_by);
    }
    flow.hot.direction_mut(from).state = forward;
    flow.hot.direction_mut(from.other()).state = reverse;
    changes
}

#[inline(always)]
fn close(forward: &mut DirectionState, reverse: &mut DirectionState, flags: TcpFlags, changes: &mut Changes) {
    if !flags.rst() && !flags.fin() {
        return;
    }
    let forward_was_open = forward.lifecycle() == Lifecycle::OPEN;
    let reverse_was_open = reverse.lifecycle() == Lifecycle::OPEN;
    changes.closed_by = if flags.rst() { Reason::Rst } else { Reason::Fin };
    changes.closed_forward = forward_was_open;
    changes.closed_reverse = reverse_was_open && flags.rst();
    changes.closed_last = if flags.rst() {
        forward_was_open || reverse_was_open
    } else {
        forward_was_open && !reverse_was_open
    };
    forward.set_lifecycle(Lifecycle::CLOSED);
    if flags.rst() {
        reverse.set_lifecycle(Lifecycle::CLOSED);
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

/// Forgets all but the packet counts, which belong to the 5-tuple.
#[inline(always)]
fn forget<P: PendingLookup>(flow: &mut LockedFlow<'_, P>, endpoint: Endpoint) {
    flow.set_leg(endpoint, Leg::UNSEEN);
    flow.locked.set_rtts(endpoint, (RttSummary::NO_RTT, 0));
    flow.clear_pending(endpoint);
    flow.set_recorded_at(endpoint, 0);
    let state = &mut flow.hot.direction_mut(endpoint).state;
    state.set_lifecycle(Lifecycle::UNSEEN);
    state.set_established(false);
    state.set_tsval_state(TsvalState::UNKNOWN);
}

/// Returns the seconds that a flow may be idle.
#[inline(always)]
pub(super) fn idle_limit(low: DirectionState, high: DirectionState, number: u8) -> u32 {
    let (low, high) = (low.lifecycle(), high.lifecycle());
    if !low.is_live() && !high.is_live() {
        CLOSED_IDLE_SECONDS
    } else if number == Datagram::NUMBER {
        QUIC_IDLE_SECONDS
    } else if number != Segment::NUMBER || low != Lifecycle::OPEN && high != Lifecycle::OPEN {
        UNANSWERED_IDLE_SECONDS
    } else {
        IDLE_SECONDS
    }
}
