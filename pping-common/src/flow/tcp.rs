//! Which of the TCP methods measure a segment.

use super::{
    hot::{DirectionState, Glance},
    key::Endpoint,
    locked::{LockedFlow, PendingLookup},
};
use crate::{
    limits::SEGMENTS_WITHOUT_TIMESTAMPS,
    method::Method,
    parse::Segment,
    rtt::{
        Effect, MatchPlan, Pass, PendingIdentifiers, PendingRange, Progress, Rules, TimestampOption,
        tcp_handshake, tcp_seq, tcp_ts,
    },
};

/// Whether this pass times the sequence numbers of a flow.
#[inline(always)]
fn is_by_seq(options: TimestampOption, rules: &Rules, pass: Pass) -> bool {
    let methods = rules.methods;
    if methods.has_both() {
        pass == Pass::Second
    } else if methods.has_seq_always() {
        true
    } else {
        methods.has(Method::TcpSeq) && options == TimestampOption::ABSENT
    }
}

#[inline(always)]
pub(super) fn effect<W: PendingIdentifiers>(
    glance: &Glance,
    from: Endpoint,
    segment: &Segment,
    progress: Progress,
    rules: &Rules,
    pending: impl Fn(Endpoint) -> Option<W>,
) -> Effect {
    let (methods, options) = (rules.methods, glance.protocol_state.timestamps());
    let (forward, reverse) = (&glance.forward, glance.reverse);
    // A flow with timestamps may have single segments without them, such as some hosts' keep-alives: they change nothing.
    if segment.has_timestamps {
        if options != TimestampOption::PRESENT {
            return Effect::Anything;
        }
    } else if options == TimestampOption::UNKNOWN {
        return Effect::Anything;
    }
    // The first segment of a direction is noted under the lock.
    if segment.flags.rst() || progress == Progress::First {
        return Effect::Anything;
    }
    if methods.has(Method::TcpHandshake) && tcp_handshake::has_effect(reverse.is_leg_pending(), segment) {
        return Effect::Anything;
    }
    let view = |state: DirectionState, endpoint| {
        PendingView(if state.has_pending() { pending(endpoint) } else { None })
    };
    let pass = if methods.has_both() { Pass::Second } else { Pass::First };
    let mut effect = Effect::Nothing;
    if methods.has(Method::TcpTs) {
        effect = tcp_ts::effect(
            forward.newest_tsval,
            forward.state.tsval_state(),
            &view(reverse, from.other()),
            PendingRange::of(methods, Pass::First),
            segment,
        );
    }
    if effect == Effect::Nothing && is_by_seq(options, rules, pass) {
        effect = tcp_seq::effect(
            &view(forward.state, from),
            &view(reverse, from.other()),
            PendingRange::of(methods, pass),
            segment,
            progress,
        );
    }
    // A segment that one method records may be recorded by the other at the same time, whatever the limit.
    if methods.has_both() && effect != Effect::Nothing { Effect::Anything } else { effect }
}

/// The pending timestamps of a direction, if it has any.
struct PendingView<W>(Option<W>);

impl<W: PendingIdentifiers> PendingIdentifiers for PendingView<W> {
    #[inline(always)]
    fn any(&self, range: PendingRange, condition: impl Fn(u32) -> bool) -> bool {
        self.0.as_ref().is_some_and(|pending| pending.any(range, condition))
    }
}

/// Notes whether a flow has timestamps.
#[inline(always)]
pub(super) fn note_options<P: PendingLookup>(flow: &mut LockedFlow<'_, P>, segment: &Segment, rules: &Rules) {
    if segment.flags.rst() {
        return;
    }
    let known = flow.hot.protocol_state.timestamps();
    let options = if segment.has_timestamps {
        TimestampOption::PRESENT
    } else if segment.flags.syn() {
        // An end that does not offer or accept timestamps here must not send them later (RFC 7323, 3.2).
        TimestampOption::ABSENT
    } else if known == TimestampOption::UNKNOWN {
        if flow.hot.protocol_state.count_without_timestamps() < SEGMENTS_WITHOUT_TIMESTAMPS {
            return;
        }
        TimestampOption::ABSENT
    } else {
        return;
    };
    if options == known {
        return;
    }
    flow.hot.protocol_state.set_timestamps(options);
    // The pending identifiers are those of the other method.
    if known != TimestampOption::UNKNOWN && !rules.methods.has_both() {
        flow.clear_pending(Endpoint::Low);
        flow.clear_pending(Endpoint::High);
    }
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "as of the caller")]
pub(super) fn plan<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    segment: &Segment,
    progress: Progress,
    now: u64,
    timed: bool,
    rules: &Rules,
    pass: Pass,
    plan: &mut MatchPlan,
) {
    let (flags, methods) = (segment.flags, rules.methods);
    if flags.rst() {
        flow.give_up_leg(from);
        flow.give_up_leg(from.other());
        return;
    }
    let has_handshake = methods.has(Method::TcpHandshake);
    if has_handshake && pass == Pass::First {
        let mut leg = flow.leg(from.other());
        tcp_handshake::match_reply(&mut leg, segment, plan);
        flow.set_leg(from.other(), leg);
        // A leg that begins takes the place of RTTs, which belong to an earlier connection.
        let mut leg = flow.leg(from);
        tcp_handshake::begin(&mut leg, segment, now, timed);
        flow.set_leg(from, leg);
    }
    // A SYN is timed by its leg alone.
    let is_left_to_legs = has_handshake && flags.syn();
    let gives_other = plan.completes_leg == 0;
    if is_by_seq(flow.hot.protocol_state.timestamps(), rules, pass) {
        if flags.ack() {
            plan.echoed = segment.acknowledgement;
            plan.freed_below = tcp_seq::REACH;
            if gives_other {
                plan.method = Method::TcpSeq;
                plan.sample_below = if segment.has_sack { 0 } else { tcp_seq::REACH };
            }
        }
        if segment.consumes_sequence_space() {
            if matches!(progress, Progress::First | Progress::Behind | Progress::Overlap) {
                // All identifiers: Karn's rule, see tcp_seq.
                plan.voided_span = 1 << 32;
            }
            if tcp_seq::is_first_sent(progress, flags) && !is_left_to_legs {
                plan.identifier = segment.sequence_end();
                plan.should_record = 1;
            }
        }
    } else if methods.has(Method::TcpTs) && pass == Pass::First && segment.has_timestamps {
        if flags.ack() {
            // TSecr does not go back, so an older TSval can never match.
            plan.echoed = segment.timestamps.tsecr;
            plan.freed_below = tcp_seq::REACH;
            if gives_other {
                plan.method = Method::TcpTs;
                plan.sample_below = 1;
            }
        }
        let direction = flow.hot.direction_mut(from);
        let mut state = direction.state.tsval_state();
        let identifier = tcp_ts::identifier(&mut direction.newest_tsval, &mut state, segment);
        direction.state.set_tsval_state(state);
        if let Some(tsval) = identifier
            && !is_left_to_legs
        {
            plan.identifier = tsval;
            plan.should_record = 1;
        }
    }
}
