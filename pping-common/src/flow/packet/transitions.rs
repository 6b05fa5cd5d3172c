//! Opening and closing flows.

use crate::{
    flow::{
        key::Endpoint,
        memory::{
            direction_state::DirectionState,
            hot::HotDirection,
            lifecycle::{Changes, Lifecycle, Reason},
            locked::{LockedFlow, PendingLookup},
            protocol_state::ProtocolState,
        },
    },
    limits::{
        CLOSED_IDLE_SECONDS, IDLE_SECONDS, QUIC_IDLE_SECONDS, RST_WITHIN, SAME_SYN, UNANSWERED_IDLE_SECONDS,
    },
    parse::{Datagram, Kind, Segment, TcpFlags, Transport},
    rtt::{Leg, LegState, Progress, RttSummary, TsvalState, is_newer},
};

/// Whether [`step`] could change anything for a packet.
#[inline(always)]
pub(in crate::flow) fn may_change(
    forward: DirectionState,
    reverse: DirectionState,
    transport: &Transport,
) -> bool {
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

/// Forgets what a segment contradicts, refuses a RST or SYN that the other end would not take, begins another connection with a
/// SYN or SYN-ACK that it takes, and corrects the progress of a SYN.
#[inline(always)]
pub(in crate::flow) fn settle<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    transport: &Transport,
    progress: &mut Progress,
    now: u64,
) {
    let flags = transport.segment.flags;
    if transport.kind != Kind::Tcp {
        return;
    }
    if *progress == Progress::Replaces {
        flow.forget_unconfirmed();
        let consumes = transport.segment.consumes_sequence_space();
        *progress = if consumes { Progress::First } else { Progress::None };
    }
    if flags.rst() {
        if !takes_reset(flow, from, &transport.segment) {
            *progress = Progress::Refused;
        }
    } else if flags.syn() {
        settle_syn(flow, from, &transport.segment, progress, now);
    }
}

/// Opens and closes directions.
#[inline(always)]
pub(in crate::flow) fn step<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    transport: &Transport,
    now: u64,
) -> Changes {
    let flags = transport.segment.flags;
    let is_tcp = transport.kind == Kind::Tcp;
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
        close(&mut forward, &mut reverse, flags, &mut changes);
    }
    if changes.closed_last {
        flow.locked.close(now, changes.closed_by);
    }
    flow.hot.direction_mut(from).state = forward;
    flow.hot.direction_mut(from.other()).state = reverse;
    changes
}

/// Whether a RST of `from` may end the connection: its number is about that of what `from` has sent or, if that is not known or not
/// confirmed, it acknowledges what the other end has sent. Anybody can send another one (RFC 5961, 3; RFC 9293, 3.10.7.3).
#[inline(always)]
fn takes_reset<P: PendingLookup>(flow: &LockedFlow<'_, P>, from: Endpoint, segment: &Segment) -> bool {
    let (own, other) = (flow.hot.direction(from), flow.hot.direction(from.other()));
    let (knows_own, knows_other) = (own.state.has_sequence(), other.state.has_sequence());
    if knows_own && (own.state.is_confirmed() || !knows_other) {
        is_near(own.sequence_end, segment.sequence)
    } else {
        // A host that refuses a connection sends the number 0 (RFC 9293, 3.10.7.1).
        !knows_other || segment.flags.ack() && is_near(other.sequence_end, segment.acknowledgement)
    }
}

/// Tells a SYN or SYN-ACK that begins something from one that passed before, which does not advance its direction, and from
/// one that an established connection does not take.
#[inline(always)]
fn settle_syn<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    segment: &Segment,
    progress: &mut Progress,
    now: u64,
) {
    let (leg, answered, state) = (flow.leg(from), flow.leg(from.other()), flow.hot.state(from));
    let number = segment.sequence.wrapping_add(1);
    let is_repeated =
        leg.state != LegState::UNSEEN && leg.state != LegState::PROPOSED && leg.identifier == number;
    let is_reply = segment.flags.ack();
    let other_established = flow.hot.state(from.other()).is_established();
    let is_answer =
        is_reply && answered.state == LegState::PROPOSED && answered.identifier == segment.acknowledgement;
    let is_asked_for = is_answer || may_be_asked_for(flow.hot.direction(from.other()), segment);
    if is_reply && !is_asked_for && !is_over(flow, from.other()) {
        *progress = Progress::Refused;
        return;
    }
    let begins = if is_reply { !is_asked_for } else { begins_anew(flow, from, segment, is_repeated, now) };
    if begins && flow.hot.is_open() {
        // The other end asks whether it is meant (RFC 5961, 4). Who has just accepted a connection does not ask for another.
        if leg.state != LegState::SYN_ACK_PENDING {
            flow.set_leg(from, Leg { identifier: number, state: LegState::PROPOSED, ..Leg::UNSEEN });
        }
        *progress = Progress::Refused;
        return;
    }
    if is_answer || begins {
        // The ports are reused: nothing of the earlier connection holds any more.
        forget(flow, from);
        forget(flow, from.other());
        flow.hot.protocol_state = ProtocolState::UNKNOWN;
        *progress = Progress::First;
    }
    if is_answer {
        let proposed = Leg { identifier: answered.identifier, state: LegState::DONE, ..Leg::UNSEEN };
        let first = from.other();
        flow.set_leg(first, proposed);
        flow.locked.open(first, now, Reason::Syn, true);
        let direction = flow.hot.direction_mut(first);
        direction.state.set_lifecycle(Lifecycle::UNANSWERED);
        direction.state.set_has_sequence();
        direction.sequence_end = answered.identifier;
    } else if !begins && is_repeated {
        // In an established connection it says nothing any more: it is a copy, or was late.
        *progress = if state.is_established() { Progress::None } else { Progress::Behind };
        return;
    } else if is_reply && state.is_established() && other_established && flow.hot.is_open() {
        *progress = Progress::Refused;
        return;
    }
    let direction = flow.hot.direction_mut(from);
    direction.state.set_has_sequence();
    direction.sequence_end = segment.sequence_end();
}

/// Whether `other` may have sent the SYN that a SYN-ACK acknowledges. Who does not see the SYN does not know its number.
#[inline(always)]
fn may_be_asked_for(other: &HotDirection, segment: &Segment) -> bool {
    !other.state.has_sequence() || is_near(other.sequence_end, segment.acknowledgement)
}

/// Whether the connection is closed, from `endpoint` too: the SYN of another one may have been missed.
#[inline(always)]
fn is_over<P: PendingLookup>(flow: &LockedFlow<'_, P>, endpoint: Endpoint) -> bool {
    flow.hot.state(endpoint).lifecycle() == Lifecycle::CLOSED && !flow.hot.is_open()
}

/// Whether a number is at most [`RST_WITHIN`] from another.
#[inline(always)]
fn is_near(end: u32, number: u32) -> bool {
    number.wrapping_sub(end).wrapping_add(RST_WITHIN) <= 2 * RST_WITHIN
}

/// Whether a SYN begins another connection than the one in the table. `is_repeated` says that it has the same number.
#[inline(always)]
fn begins_anew<P: PendingLookup>(
    flow: &LockedFlow<'_, P>,
    from: Endpoint,
    segment: &Segment,
    is_repeated: bool,
    now: u64,
) -> bool {
    let (direction, other) = (flow.hot.direction(from), flow.hot.state(from.other()));
    let is_closed = direction.state.lifecycle() == Lifecycle::CLOSED;
    let is_over = direction.state.is_established() || is_closed;
    if flow.leg(from).state == LegState::UNSEEN {
        return is_over || other.is_established();
    }
    if !is_repeated || !is_over {
        return !is_repeated;
    }
    // Some hosts send a SYN again after it was refused.
    if is_closed && flow.leg(from.other()).state == LegState::UNSEEN {
        return true;
    }
    if segment.has_timestamps && direction.state.tsval_state() != TsvalState::UNKNOWN {
        is_newer(segment.timestamps.tsval, direction.newest_tsval)
    } else {
        now.saturating_sub(flow.locked.beginning().1) >= SAME_SYN
    }
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
    state.unset_established();
    state.unset_has_sequence();
    state.set_window_scale(0);
    state.set_confirmed(false);
    state.set_tsval_state(TsvalState::UNKNOWN);
}

/// Returns the seconds that a flow may be idle.
#[inline(always)]
pub(in crate::flow) fn idle_limit(low: DirectionState, high: DirectionState, number: u8) -> u32 {
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
