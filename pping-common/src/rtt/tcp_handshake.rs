//! `tcp-handshake`: a SYN and its SYN-ACK, then the SYN-ACK and the ACK that completes the handshake (RFC 9293, 3.5).

use super::{
    leg::{Leg, LegState},
    plan::MatchPlan,
};
use crate::{method::Method, parse::Segment};

/// Whether a segment without RST begins or ends a leg, or retransmits a SYN. `is_reverse_pending` says whether the leg of
/// the other end is pending.
#[inline(always)]
pub(crate) fn may_change(is_reverse_pending: bool, segment: &Segment) -> bool {
    segment.flags.syn() || is_reverse_pending
}

/// Matches a segment against the leg of the other end.
#[inline(always)]
pub(crate) fn match_reply(leg: &mut Leg, segment: &Segment, plan: &mut MatchPlan) {
    if !segment.flags.ack() {
        return;
    }
    // A SYN-ACK answers a SYN, also in a simultaneous open.
    let expected = if segment.flags.syn() { LegState::FIRST_PENDING } else { LegState::SYN_ACK_PENDING };
    if leg.state != expected {
        return;
    }
    let beyond = segment.acknowledgement.wrapping_sub(leg.identifier);
    let payload = u32::from(leg.payload);
    if beyond == 0 || beyond == payload {
        leg.state = LegState::DONE;
        plan.method = Method::TcpHandshake;
        plan.recorded_at = leg.since;
        plan.matched = leg.identifier;
        plan.completes_leg = 1;
    } else if beyond > payload && beyond < 1 << 31 {
        // The segment acknowledges more than the handshake, so a packet was missed.
        leg.state = LegState::DONE;
    }
}

/// Begins the leg of a SYN or SYN-ACK at `now`, ns. It is pending if `timed`. Without the method it only keeps the number, by
/// which a copy of the SYN is known. A SYN that passes again within `copy_within` ns is a copy.
#[inline(always)]
pub(crate) fn begin(leg: &mut Leg, segment: &Segment, now: u64, timed: bool, copy_within: u64) {
    if !segment.flags.syn() {
        return;
    }
    let identifier = segment.sequence.wrapping_add(1);
    if leg.state != LegState::UNSEEN && leg.identifier == identifier {
        if leg.is_pending() && now.saturating_sub(leg.since) >= copy_within {
            leg.state = LegState::AMBIGUOUS;
        }
        return;
    }
    leg.identifier = identifier;
    leg.since = now;
    leg.payload = if segment.payload < u32::from(u16::MAX) { segment.payload as u16 } else { 0 };
    leg.state = match (timed, segment.flags.ack()) {
        (false, _) => LegState::DONE,
        (true, false) => LegState::FIRST_PENDING,
        (true, true) => LegState::SYN_ACK_PENDING,
    };
}
